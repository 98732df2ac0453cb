"""`bmrm schema`: the JSON schema of config files, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bmrm.app.tables import print_json

if TYPE_CHECKING:
    import argparse

    from bmrm.cli._core.parser import Parser


def add_arguments(parser: Parser) -> None:
    """There are none."""
    parser.examples("bmrm schema > bmrm.schema.json")


def run(parsed: argparse.Namespace) -> int:
    """Print it."""
    from bmrm.app.config.schema import json_schema

    print_json(json_schema())
    return 0
