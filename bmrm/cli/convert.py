"""`bmrm convert`: data from one format to another."""

from __future__ import annotations

from bmrm.cli._core.arguments import add_data, format_of
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm convert a9a.svm a9a.store
bmrm convert 'shards/*.svm' all.npz
bmrm convert data.csv data.svm.gz
"""


def add_arguments(parser: Parser) -> None:
    """The files, and how they are read."""
    parser.examples(EXAMPLES)
    add_data(parser)
    parser.add_argument(
        "out",
        metavar="OUT",
        help="a folder NAME.store (written part by part from plain svmlight text), NAME.npz or NAME.svm (also .gz)",
    )


def run(parsed: Namespace) -> int:
    """Write the data, and say how many."""
    from bmrm.app.convert import convert

    found = convert(parsed.data, parsed.out, format=format_of(parsed))
    print(f"{parsed.out}: {found.rows} rows, {found.features} features, {found.entries} entries")
    return 0
