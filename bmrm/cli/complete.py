"""`bmrm complete`: the features that rows most likely lack, each feature in turn a target; alone or over ranks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bmrm.cli._core.arguments import count
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.cli.train import add_config, settings_of
from bmrm.problem import InputError
from bmrm.vocabulary import CONFIGS

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

EXAMPLES = """
bmrm complete papers.svm incomplete.svm --top 5
bmrm complete words.spardat new.spardat --loss logistic --lambda 1e-3 --out missing.txt
mpirun -n 4 bmrm complete config.yaml incomplete.svm --json
"""
LEFT_OUT = "output", "start", "search", "calibrate"
"""Sections of a config whose options this command does not have."""
PARTS = ("data", "validation"), ("data", "test")


def add_arguments(parser: Parser) -> None:
    """Complete rows, those to be completed, and the config of the trainings."""
    parser.examples(EXAMPLES)
    parser.several = "data"
    parser.usage = "bmrm complete TRAIN ... TEST [options]\n       bmrm complete CONFIG TEST [options]"
    group = parser.add_argument_group("completion")
    group.add_argument(
        "--top", type=count(1), default=10, metavar="K", help="features that are kept for each row (default 10)"
    )
    group.add_argument(
        "--out",
        metavar="FILE",
        default="-",
        help="where a line for each row goes, `feature value` pairs with commas between, the likeliest first; values "
        "are probabilities, or scores of losses without; compressed if it ends in .gz, .bz2 or .xz; default: -",
    )
    add_config(parser, LEFT_OUT, PARTS)
    parser.add_argument("--json", action="store_true", help="a list of [feature, value] for each row, a line each")
    parser.add_argument("--quiet", action="store_true", help="no progress and no notes")


def run(group: Group, parsed: Namespace | None, *, started: bool) -> int:
    """Collective: the trainings; `parsed` on rank 0, None elsewhere."""
    from bmrm.app.complete import completed
    from bmrm.app.complete_run import read
    from bmrm.app.progress import countdown
    from bmrm.run import OK, STOPPED, of_rank_0

    settings, top, quiet = of_rank_0(group, lambda: _asked(parsed))
    group.timeout = settings["mpi"]["timeout"]
    train, rows, problem, notes = read(settings, group)
    for note in notes if parsed is not None and not quiet else ():
        print(f"bmrm: {note}", file=sys.stderr)
    with countdown("features", quiet=parsed is None or quiet) as told:
        found = completed(train, rows, problem, top, group, told)
    status = None
    if found is not None and parsed is not None:
        layout = train.layout
        _write(found, parsed, int(bool(layout is not None and layout.one_based)))
        if not quiet:
            constant = f", {found.constant} that all rows have or none left out" if found.constant else ""
            print(
                f"bmrm: {found.trained} features trained, {found.converged} to the tolerance{constant}", file=sys.stderr
            )
        status = OK if found.converged == found.trained else STOPPED
    return int(group.broadcast(status))


def _asked(parsed: Namespace | None) -> list[Any]:
    """The config with the rows to be completed as `data.test`, checked."""
    assert parsed is not None
    *parsed.data, last = parsed.data or [""]
    if not last or last.endswith(CONFIGS) or not (parsed.data or parsed.config):
        raise InputError("bmrm complete: expected TRAIN and TEST, such as `bmrm complete rows.svm new.svm`")
    settings = settings_of(parsed, "complete", ("start", "search", "calibrate"))
    for part in ("validation", "test"):
        if settings["data"][part] is not None:
            raise InputError(f"data.{part} is not for `bmrm complete`, which takes TEST")
    settings["data"]["test"] = [last]
    return [settings, parsed.top, parsed.quiet]


def _write(found: Any, parsed: Namespace, first: int) -> None:
    from bmrm.app.complete import lines_of
    from bmrm.data.files import compressed_like_its_name

    if parsed.json:
        lines: Iterable[str] = (
            json.dumps([[name, value] for name, value in found.row(k)]) for k in range(len(found.features))
        )
    else:
        lines = lines_of(found, first)
    if parsed.out == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
        return
    with compressed_like_its_name(parsed.out) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
