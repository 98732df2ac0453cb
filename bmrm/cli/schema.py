"""`bmrm schema`: the JSON schema of config files, for editors."""

from __future__ import annotations

from bmrm.app.tables import print_json
from bmrm.cli._core.parser import Namespace, Parser


def add_arguments(parser: Parser) -> None:
    """There are none."""
    parser.examples("bmrm schema > bmrm.schema.json")


def run(parsed: Namespace) -> int:
    """Print it."""
    from bmrm.app.config.schema import json_schema

    print_json(json_schema())
    return 0
