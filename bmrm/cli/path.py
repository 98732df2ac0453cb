"""`bmrm path`: models for many lambdas, as a config or options say, alone or over ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.app.tables import print_json
from bmrm.cli._core.arguments import count, lambdas_of, share, words
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.cli.train import add_config, settings_of
from bmrm.problem import InputError

if TYPE_CHECKING:
    from bmrm.app.path import Path as Found
    from bmrm.mpi.group import Group

EXAMPLES = """
bmrm path houses.csv --loss least_squares --regularizer l1 --scale standardize --out paths/houses
bmrm path a9a.svm --loss logistic --regularizer '{name: elastic_net, l1_ratio: 0.9}' --validation a9a.t
bmrm path config.yaml --lambdas 1 0.1 0.01 --json
mpirun -n 4 bmrm path config.yaml --n-lambdas 50 --ratio 1e-4
"""
LEFT_OUT = "output", "start", "calibrate", "search"
"""Sections of a config whose options this command does not have."""


def add_arguments(parser: Parser) -> None:
    """The data and the config of a training; lambdas, and where they end."""
    parser.examples(EXAMPLES)
    parser.several = "data"
    parser.usage = "bmrm path DATA ... [options]\n       bmrm path CONFIG [options]"
    group = parser.add_argument_group("the path")
    group.add_argument(
        "--lambdas",
        nargs="+",
        metavar="NUMBER",
        help="decreasing values of lambda; default: a grid from lambda_max down",
    )
    group.add_argument(
        "--n-lambdas", type=count(1), default=100, metavar="COUNT", help="points of that grid (default %(default)s)"
    )
    group.add_argument(
        "--ratio",
        type=share,
        metavar="SHARE",
        help="of the last lambda of the grid to the first; default: 1e-3, or 1e-2 if rows are fewer than features",
    )
    group.add_argument(
        "--most-features", type=count(1), metavar="COUNT", help="end at the first point with so many features"
    )
    group.add_argument(
        "--most-explained",
        type=share,
        metavar="SHARE",
        help="end at the first point that explains this share of the loss",
    )
    group.add_argument(
        "--metrics",
        "--measures",
        nargs="+",
        metavar="NAME",
        help="measures of the validation rows, see `bmrm measures`; default: those of the loss",
    )
    group.add_argument(
        "--out",
        metavar="DIR",
        help="folder for path.json, table.csv, weights.csv, path.svg and path.html; default: nothing is written",
    )
    group.add_argument("--models", action="store_true", help="also write a model file for each point, models/K.npz")
    group.add_argument(
        "--resume", action="store_true", help="take the points that an earlier run, which was killed, left in DIR"
    )
    add_config(parser, LEFT_OUT, [("data", "test")])
    parser.add_argument("--json", action="store_true", help="print path.json, in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress, notes and table: nothing but errors")


def run(group: Group, parsed: Namespace | None, *, started: bool) -> int:
    """Collective: the path; `parsed` on rank 0, None elsewhere."""
    from bmrm.app.path_kept import POINTS, KeptPoints
    from bmrm.app.path_run import RESULT, asked_of, path_of
    from bmrm.app.pipeline.run_folder import open_for_results
    from bmrm.app.progress import countdown
    from bmrm.run import OK, STOPPED, of_rank_0

    settings, given, switches = of_rank_0(group, lambda: _wanted(parsed))
    group.timeout = settings["mpi"]["timeout"]
    if parsed is not None and parsed.out is not None:
        open_for_results(Path(parsed.out), RESULT, POINTS)
    quiet, out = switches["quiet"], switches["out"]
    kept = None if out is None else KeptPoints(Path(out) / POINTS, switches["resume"])
    with countdown("points", quiet or parsed is None) as told:
        found = path_of(settings, asked_of(settings, **given), group, quiet=quiet, kept=kept, told=told)
    status = None
    if found is not None and parsed is not None:
        _show(found, parsed, settings)
        if kept is not None and all(one.name == "CONVERGED" for one in found.statuses):
            kept.clear()
        status = OK if all(one.name == "CONVERGED" for one in found.statuses) else STOPPED
    return int(group.broadcast(status))


def _wanted(parsed: Namespace | None) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The config and the options, checked."""
    from bmrm.app.path_run import asked_of

    assert parsed is not None
    if parsed.models and parsed.out is None:
        raise InputError("--models without --out, expected the folder that they are written to")
    if parsed.resume and parsed.out is None:
        raise InputError("--resume without --out, expected the folder that a path was written to")
    settings = settings_of(parsed, "path", ("start", "calibrate", "search"))
    if parsed.metrics is not None:
        if settings["data"]["validation"] is None:
            raise InputError("--metrics measure validation rows, expected --validation")
        settings["output"]["metrics"] = words(parsed.metrics)
    stop = {"nonzeros": parsed.most_features, "explained": parsed.most_explained}
    given = {
        "lambdas": lambdas_of(parsed.lambdas),
        "n_lambdas": parsed.n_lambdas,
        "ratio": parsed.ratio,
        "stop": {name: value for name, value in stop.items() if value is not None},
    }
    asked_of(settings, **given)
    return settings, given, {"quiet": parsed.quiet, "out": parsed.out, "resume": parsed.resume}


def _show(found: Found, parsed: Namespace, settings: dict[str, Any]) -> None:
    """Write the files, print the table."""
    from bmrm.app.path_run import plain_of, text_of, write_results

    loss = found.models[0].header["loss"]["name"]
    title = f"{loss} + {settings['regularizer']['name']} on {', '.join(settings['data']['train'])}"
    files: list[str] = []
    if parsed.out is not None:
        files = write_results(Path(parsed.out), found, title, settings, parsed.models)
    if parsed.json:
        print_json({"title": title, **plain_of(found), "settings": settings})
        return
    if parsed.quiet:
        return
    print("\n".join([title, found.words(), *text_of(found)]))
    if files:
        print(f"files in {parsed.out}: {', '.join(files)}")
