"""`bmrm cv`: cross-validation of a config, or of candidates that vary it, alone or over ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.app.tables import print_json
from bmrm.cli._core.arguments import count, lambdas_of, share, words
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.cli.train import add_config, settings_of
from bmrm.problem import InputError

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

EXAMPLES = """
bmrm cv a9a.svm --loss logistic --folds 10 --measures auc map
bmrm cv a9a.svm --loss hinge --lambdas 1e-5 1e-4 1e-3 --choose one_standard_error --out cv/a9a
bmrm cv config.yaml --folds folds.txt --measures accuracy --json
mpirun -n 4 bmrm cv config.yaml --folds 5 --repeats 3
mpirun -n 4 bmrm cv a9a.svm --loss hinge --n-lambdas 20 --parallel folds
"""
LEFT_OUT = "output", "start", "search"
"""Sections of a config whose options this command does not have."""
PARTS = ("data", "validation"), ("data", "test")


def add_arguments(parser: Parser) -> None:
    """The data and the config of a training; folds, measures, candidates."""
    parser.examples(EXAMPLES)
    parser.several = "data"
    parser.usage = "bmrm cv DATA ... [options]\n       bmrm cv CONFIG [options]"
    group = parser.add_argument_group("cross-validation")
    group.add_argument(
        "--folds",
        default="10",
        metavar="COUNT",
        help="how many folds, or a file with the number of the fold of each row, -1 for rows that are always trained "
        "on (default %(default)s)",
    )
    group.add_argument(
        "--split",
        default="auto",
        metavar="KIND",
        help="stratified, random, grouped or time; auto keeps the shares of the classes, and groups whole where the "
        "loss is of groups (default %(default)s)",
    )
    group.add_argument(
        "--repeats", type=count(1), default=1, metavar="COUNT", help="times that rows are divided anew (default 1)"
    )
    group.add_argument(
        "--measures",
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="measures that fit the loss, see `bmrm measures`; the first chooses; default: those of the loss",
    )
    group.add_argument(
        "--lambdas",
        nargs="+",
        metavar="NUMBER",
        help="values of lambda to choose from; default: the candidates of the config's `search`, else that of the "
        "config alone",
    )
    group.add_argument(
        "--n-lambdas",
        type=count(1),
        metavar="COUNT",
        help="so many values of lambda instead, from lambda_max of all rows down",
    )
    group.add_argument(
        "--choose",
        default="best",
        metavar="RULE",
        help="best, or one_standard_error: the largest lambda within that of the best (default %(default)s)",
    )
    group.add_argument(
        "--each-label", action="store_true", help="of several labels or classes, also each against all others"
    )
    group.add_argument(
        "--confidence", type=share, default=0.95, metavar="SHARE", help="of the intervals (default %(default)s)"
    )
    group.add_argument(
        "--parallel",
        choices=("rows", "folds"),
        default="rows",
        help="what ranks share out: the rows of each training, or the folds, for which each rank reads all rows "
        "(default %(default)s)",
    )
    group.add_argument(
        "--no-refit", action="store_true", help="no training of the chosen candidate on all rows at the end"
    )
    group.add_argument(
        "--out",
        metavar="DIR",
        help="folder for cv.json, table.csv, folds.txt, predictions.csv, roc.csv, precision_recall.csv, cv.html and "
        "model.npz; default: nothing is written",
    )
    add_config(parser, LEFT_OUT, PARTS)
    parser.add_argument("--json", action="store_true", help="print cv.json, in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress and no notes")


def run(group: Group, parsed: Namespace | None, *, started: bool) -> int:
    """Collective: the cross-validation; `parsed` on rank 0, None elsewhere."""
    from bmrm.app.pipeline.run_folder import open_for_results
    from bmrm.app.progress import countdown
    from bmrm.run import OK, STOPPED, of_rank_0
    from bmrm.search._core.of_config import validated
    from bmrm.search._core.writing import RESULT

    asked = of_rank_0(group, lambda: _asked(parsed))
    group.timeout = asked["settings"]["mpi"]["timeout"]
    wanted = _wanted(asked)
    if parsed is not None and parsed.out is not None:
        open_for_results(Path(parsed.out), RESULT)
    with countdown("trainings", quiet=parsed is None or parsed.quiet) as told:
        how = {"parallel": asked["parallel"], "quiet": asked["quiet"], "told": told}
        result = validated(asked["settings"], asked["tried"], wanted, group, **how)
    status = None
    if result is not None and parsed is not None:
        _show(result, parsed, asked)
        status = OK if result.best.converged and (result.model is None or result.model.solution.converged) else STOPPED
    return int(group.broadcast(status))


def _asked(parsed: Namespace | None) -> dict[str, Any]:
    """The config and the options, checked."""
    from bmrm.search._core.folds import read_numbers

    assert parsed is not None
    settings = settings_of(parsed, "cv", ["start"])
    folds: Any = int(parsed.folds) if parsed.folds.lstrip("-").isdigit() else read_numbers(parsed.folds).tolist()
    tried = _tried(parsed) or _of_search(settings)
    asked = {
        "settings": settings,
        "tried": tried,
        "quiet": parsed.quiet,
        "parallel": parsed.parallel,
        "folds": {"count": folds, "split": parsed.split, "repeats": parsed.repeats, "seed": settings["seed"]},
        "measures": settings["output"]["metrics"] if parsed.measures is None else words(parsed.measures),
        "choose": parsed.choose,
        "refit": not parsed.no_refit,
        "confidence": parsed.confidence,
        "each_label": parsed.each_label,
        "n_lambdas": parsed.n_lambdas,
        "origin": None if isinstance(folds, int) else parsed.folds,
    }
    _wanted(asked)
    return asked


def _wanted(asked: dict[str, Any]) -> Any:
    """From plain JSON; InputError for what cannot be."""
    from bmrm.app.calibration.asked import checked
    from bmrm.search._core.crossing import Wanted
    from bmrm.search._core.folds import AskedFolds

    names = "measures", "choose", "refit", "confidence", "each_label", "n_lambdas"
    folds, calibrate = AskedFolds(**asked["folds"], origin=asked["origin"]), checked(asked["settings"]["calibrate"])
    return Wanted(folds, calibrate=calibrate, **{name: asked[name] for name in names})


def _tried(parsed: Namespace) -> list[dict[str, Any]]:
    """The candidates: of `--lambdas`; [] for the config as it is."""
    from bmrm.search._core.candidates import LAMBDA

    if parsed.lambdas is not None and parsed.n_lambdas is not None:
        raise InputError("--n-lambdas beside --lambdas, expected one of the two")
    return [{LAMBDA: lam} for lam in lambdas_of(parsed.lambdas) or ()]


def _of_search(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The candidates of the config's search; [] where there is none."""
    from bmrm.app.model_file import from_plain
    from bmrm.registry import SEARCHES
    from bmrm.search.grid import Grid
    from bmrm.search.random import Random

    section = settings["search"]
    if section is None:
        return []
    if "seed" in section and section["seed"] is None:
        section = {**section, "seed": settings["seed"]}
    search = from_plain(SEARCHES, section)
    if not isinstance(search, (Grid, Random)):
        raise InputError(f"search: {section['name']} is for `bmrm train`, expected grid or random, or --lambdas")
    return [dict(values) for values in search.tried()]


def _show(result: Any, parsed: Namespace, asked: dict[str, Any]) -> None:
    """Write the files, print the table."""
    from bmrm.search._core.record import interval_of
    from bmrm.search._core.writing import write_results

    train = asked["settings"]["data"]["train"]
    title = f"Cross-validation on {', '.join(train)}"
    files: list[str] = []
    if parsed.out is not None:
        files = write_results(Path(parsed.out), result, title, asked["settings"])
    if parsed.json:
        print_json({"title": title, **result.plain()})
        return
    print("\n".join([title, result.words(), *result.text()]))
    for label, values in result.each_label.items():
        found = {name: interval_of(one, name, result.confidence) for name, one in values.items()}
        told = ", ".join(f"{name} {'-' if one is None else one}" for name, one in found.items())
        print(f"{label}: {told}")
    if result.model is not None:
        solution = result.model.solution
        print(f"all rows: {solution.status.name}, relative gap {solution.relative_gap:.2g}")
    if files:
        print(f"files in {parsed.out}: {', '.join(files)}")
    sys.stdout.flush()
