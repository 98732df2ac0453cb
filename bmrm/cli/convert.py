"""`bmrm convert`: data from one format to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmrm.cli._core.arguments import add_data, count, format_of, say_converted
from bmrm.cli._core.parser import Namespace, Parser

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

EXAMPLES = """
bmrm convert a9a.svm a9a.store
mpirun -n 4 bmrm convert 'parts/*.parquet' all.store
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
        help="a folder NAME.store (written part by part, by all ranks), NAME.npz, .svm, .csv, .tsv, "
        ".parquet, .arrow, .spardat, .hb (Harwell-Boeing), or .ssv (june: NAME.factors.ssv and NAME.activations.ssv); "
        "text also with .gz, .bz2, .xz",
    )
    parser.add_argument("--columns", type=count(1), metavar="COUNT", help="so many features, drawn by chance")
    parser.add_argument("--seed", type=count(0), default=0, metavar="NUMBER", help="of the draw (default %(default)s)")


def run(group: Group, parsed: Namespace | None, *, started: bool) -> int:
    """Collective: write the data, and say how many; `parsed` on rank 0, None elsewhere."""
    from bmrm.app.convert import convert
    from bmrm.run import OK, of_rank_0

    wanted = of_rank_0(group, lambda: _wanted(parsed))
    found = convert(wanted.pop("data"), wanted.pop("out"), group=group, **wanted)
    if found is not None and parsed is not None:
        say_converted(parsed.out, found)
    return OK


def _wanted(parsed: Namespace | None) -> dict[str, Any]:
    assert parsed is not None
    return {"data": parsed.data, "out": parsed.out, "format": format_of(parsed)} | {
        name: getattr(parsed, name) for name in ("columns", "seed")
    }
