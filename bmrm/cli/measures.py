"""`bmrm measures`: a line for each measure, or all about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmrm.app.tables import print_json, print_lines, print_pairs
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.cli.plug_ins import sides
from bmrm.problem import InputError
from bmrm.registry import nearest

if TYPE_CHECKING:
    from bmrm.metrics import Measure


def add_arguments(parser: Parser) -> None:
    """A task or a measure, or none; `--json`."""
    parser.examples("bmrm measures\nbmrm measures binary\nbmrm measures ndcg")
    parser.add_argument(
        "task",
        nargs="?",
        metavar="NAME",
        help="a task, such as binary, or a measure, for all about it",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print them."""
    from bmrm.metrics import MEASURES, TASKS

    asked = parsed.task
    if asked is not None and asked not in (*TASKS, *MEASURES):
        close = nearest(asked, [*TASKS, *MEASURES])
        raise InputError(f"unknown task or measure {asked!r}{close}; the tasks are {', '.join(TASKS)}")
    tasks = (asked,) if asked in TASKS else TASKS
    chosen = [MEASURES[asked]] if asked in MEASURES else [m for m in MEASURES.values() if set(m.tasks) & set(tasks)]
    found = sorted(chosen, key=lambda one: one.spelling)
    if parsed.json:
        print_json([described(one) for one in found])
    elif asked in MEASURES:
        print_pairs(found[0].name, _details(found[0]))
    elif asked is None:
        print_lines(("name", "tasks"), [(one.spelling, ", ".join(one.tasks)) for one in found])
    else:
        print_lines(("name", "what it is"), [(one.spelling, one.formula) for one in found])
    return 0


def _details(measure: Measure) -> dict[str, str]:
    return {
        "written": measure.spelling,
        "tasks": ", ".join(measure.tasks),
        "formula": measure.formula,
        "weights": measure.weighted,
        "source": measure.source,
    }


def described(measure: Measure) -> dict[str, Any]:
    """For programs."""
    number = measure.number
    return {
        "name": measure.name,
        "spelling": measure.spelling,
        "tasks": list(measure.tasks),
        "judges": measure.of,
        "formula": measure.formula,
        "weights": measure.weighted,
        "source": measure.source,
        "number": None
        if number is None
        else {
            "name": number.name,
            "types": ["integer" if number.whole else "number"],
            "range": sides(number.range),
            "required": number.required,
            "default": number.default,
            "doc": number.range.doc,
        },
    }
