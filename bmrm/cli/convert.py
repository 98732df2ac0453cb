"""`bmrm convert`: data from one format to another."""

from __future__ import annotations

from bmrm.cli._core.arguments import add_data, count, format_of, say_converted
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm convert a9a.svm a9a.store
bmrm convert 'shards/*.svm' all.npz
bmrm convert data.csv data.svm.gz
bmrm convert a9a.svm a9a.parquet --columns 50 --seed 1
bmrm convert sp.txt:42.42+ new.ssv                     # the thesis' spardat to its june
"""


def add_arguments(parser: Parser) -> None:
    """The files, and how they are read."""
    parser.examples(EXAMPLES)
    add_data(parser)
    parser.add_argument(
        "out",
        metavar="OUT",
        help="a folder NAME.store (written part by part from plain svmlight text), NAME.npz, .svm, .csv, .tsv, "
        ".parquet, .arrow, .spardat, .hb (Harwell-Boeing), or .ssv (june: NAME.factors.ssv and NAME.activations.ssv); "
        "text also with .gz, .bz2, .xz",
    )
    parser.add_argument("--columns", type=count(1), metavar="COUNT", help="so many features, drawn by chance")
    parser.add_argument("--seed", type=count(0), default=0, metavar="NUMBER", help="of the draw (default %(default)s)")


def run(parsed: Namespace) -> int:
    """Write the data, and say how many."""
    from bmrm.app.convert import convert

    found = convert(parsed.data, parsed.out, format=format_of(parsed), columns=parsed.columns, seed=parsed.seed)
    say_converted(parsed.out, found)
    return 0
