"""`bmrm init`: a commented config for some data."""

from __future__ import annotations

import sys
from pathlib import Path

from bmrm.cli._core.arguments import add_columns, add_data, columns_of, format_of
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError

EXAMPLES = """
bmrm init a9a.svm                        # writes a9a.yaml
bmrm init houses.csv --format '{name: csv, label: price}' --out houses.yaml
bmrm init policies.csv --missing indicator --offset log_exposure
bmrm init sklearn:digits --out -
"""


def add_arguments(parser: Parser) -> None:
    """The data, and where the config goes."""
    parser.examples(EXAMPLES)
    add_data(parser)
    add_columns(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="the config; - for standard output; default: the name of the data and .yaml"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if there is one")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(parsed: Namespace) -> int:
    """Write it."""
    from bmrm.app.config.config import run_name
    from bmrm.app.first_config import first_config
    from bmrm.data.files import whole_file

    path = Path(f"{run_name(parsed.data)}.yaml" if parsed.out is None else parsed.out)
    if parsed.out != "-" and path.exists() and not parsed.overwrite:
        raise InputError(f"{path}: it is there already; --overwrite replaces it, --out names another")
    text = first_config(parsed.data, format_of(parsed), columns_of(parsed))
    if parsed.out == "-":
        sys.stdout.write(text)
        return 0
    with whole_file(path) as file:
        file.write(text.encode())
    if not parsed.quiet:
        print(f"{path} is written; train with: bmrm train {path}")
    return 0
