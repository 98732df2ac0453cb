"""`bmrm compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bmrm.app.tables import print_json, print_lines
from bmrm.cli._core.arguments import count
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError

if TYPE_CHECKING:
    from bmrm.app.comparison import Run

EXAMPLES = """
bmrm compare runs/hinge runs/logistic
bmrm compare runs/* --folds 5 --json
"""


def add_arguments(parser: Parser) -> None:
    """The runs, and how intervals are taken."""
    parser.examples(EXAMPLES)
    parser.several = "runs"
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs, two or more")
    parser.add_argument(
        "--folds",
        type=count(0),
        default=10,
        metavar="COUNT",
        help="parts of the validation and test rows from which the intervals of measures (95 %%) are taken, where the "
        "files are still there; 0: no intervals (a whole number >= 0; default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print them."""
    from bmrm.app.comparison import differences, load_run, same_problem

    if len(parsed.runs) < 2:
        raise InputError(f"bmrm compare: only one run, {parsed.runs[0]}; expected two or more")
    runs = [load_run(folder, parsed.folds if parsed.folds > 1 else None) for folder in parsed.runs]
    if parsed.json:
        print_json(_plain(runs))
        return 0
    names = [run.folder for run in runs]
    settings = differences([run.config for run in runs])
    if settings:
        print_lines(("settings", *names), [(key, *map(_text, values)) for key, values in settings.items()])
        print()
    same = "the same problem" if same_problem(runs) else "different problems: objectives are not comparable"
    print_lines(("results", *names), [*_results(runs), *_measures(runs)])
    print(f"\n{same}")
    return 0


def _results(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    from bmrm.app.report import number

    rows: Mapping[str, Any] = {
        "status": lambda summary: str(summary.get("status")),
        "objective": lambda summary: number(summary.get("objective"), 8),
        "lower bound": lambda summary: number(summary.get("lower_bound"), 8),
        "relative gap": lambda summary: number(summary.get("relative_gap"), 2),
        "iterations": lambda summary: str(summary.get("iterations")),
        "passes": lambda summary: number(summary.get("passes"), 4),
        "seconds": lambda summary: number((summary.get("seconds") or {}).get("total"), 3),
        "ranks": lambda summary: str(summary.get("ranks")),
        "solver": lambda summary: str(summary.get("solver")).split(" ")[0],
    }
    return [(name, *(text(run.summary) for run in runs)) for name, text in rows.items()]


def _measures(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    from bmrm.app.comparison import measures

    return [(f"{part} {name}", *(_measure(run, part, name) for run in runs)) for part, name in measures(runs)]


def _measure(run: Run, part: str, name: str) -> str:
    from bmrm.app.report import number

    text = number((run.summary["metrics"].get(part) or {}).get(name), 5)
    interval = run.intervals.get(part, {}).get(name)
    return text if interval is None else f"{text} ({interval[1]:.4g} to {interval[2]:.4g})"


def _plain(runs: Sequence[Run]) -> dict[str, Any]:
    from bmrm.app.comparison import differences, same_problem

    kept = ("status", "objective", "lower_bound", "relative_gap", "iterations", "passes", "seconds", "ranks", "solver")
    return {
        "same_problem": same_problem(runs),
        "settings": differences([run.config for run in runs]),
        "runs": [
            {"folder": run.folder}
            | {key: run.summary.get(key) for key in (*kept, "metrics")}
            | {
                "intervals": {
                    part: {name: dict(zip(("mean", "low", "high"), one)) for name, one in measured.items()}
                    for part, measured in run.intervals.items()
                }
            }
            for run in runs
        ],
    }


def _text(value: Any) -> str:
    from bmrm.app.config.words import default_in_words

    return ", ".join(map(str, value)) if isinstance(value, list) else default_in_words(value)
