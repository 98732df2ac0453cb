"""`bmrm project`: rows on few directions, random ones or leading singular vectors."""

from __future__ import annotations

from bmrm.cli._core.arguments import add_data, count, format_of, say_converted
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError

EXAMPLES = """
bmrm project a9a.svm a9a.csv --components 10 --save map.npz
bmrm project a9a.t a9a_test.csv --load map.npz
bmrm project rows.csv pca.parquet --scale standardize --components 5
bmrm project a9a.svm small.npz --method random --components 100 --seed 1
"""
FITTING = {"method": "svd", "components": 10, "scale": "none", "seed": 0}
"""Options of a map that is fitted, with their defaults."""


def add_arguments(parser: Parser) -> None:
    """The files, and the map."""
    parser.examples(EXAMPLES)
    add_data(parser)
    parser.add_argument("out", metavar="OUT", help="as of `bmrm convert`; targets and weights are kept")
    parser.add_argument(
        "--method",
        choices=("svd", "random"),
        help="svd, the leading right singular vectors, or random, normal directions (default svd)",
    )
    parser.add_argument("--components", type=count(1), metavar="COUNT", help="how many directions (default 10)")
    parser.add_argument(
        "--scale",
        choices=("none", "standardize", "max_abs"),
        help="of the columns before; standardize for principal components (default none)",
    )
    parser.add_argument("--seed", type=count(0), metavar="NUMBER", help="of random directions (default 0)")
    parser.add_argument("--save", metavar="FILE", help="write the map, for other rows")
    parser.add_argument("--load", metavar="FILE", help="take the map of this file instead of one that is fitted")


def run(parsed: Namespace) -> int:
    """Write the rows, and say how many."""
    from bmrm.app.project import project

    given = {name: getattr(parsed, name) for name in FITTING if getattr(parsed, name) is not None}
    if parsed.load is not None and given:
        raise InputError(f"--{next(iter(given))} beside --load, whose map is fitted")
    found = project(
        parsed.data,
        parsed.out,
        format=format_of(parsed),
        save=parsed.save,
        load=parsed.load,
        **{**FITTING, **given},
    )
    say_converted(parsed.out, found)
    return 0
