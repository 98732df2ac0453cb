"""What a config may not ask for beside `mpi.slices`, said before rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bmrm.problem import InputError, shown
from bmrm.solvers import SOLVERS

NAME = "mpi.slices"
DOORS = "`bmrm train` and `python -m bmrm.run` have slices"
REGULARIZERS = ("l2",)
"""Those that know slices of w."""
Settings = Mapping[str, Any]
Place = tuple[str, ...]


def refusals(settings: Settings) -> Iterator[tuple[Place, str]]:
    """The fields of a checked config that do not go with slices, and why; none where there are no slices."""
    if not settings["mpi"]["slices"]:
        return
    solver, regularizer = settings["solver"], settings["regularizer"]["name"]
    if not getattr(SOLVERS.get(solver["name"]).cls, "sliced", False):
        able = [entry.name for entry in SOLVERS.all() if getattr(entry.cls, "sliced", False)]
        yield (
            ("solver",),
            f"solver {solver['name']} needs all weights in one place, beside {NAME} take one of {', '.join(able)}",
        )
    if solver.get("cuts_per_pass", 1) > 1:
        cuts = shown(solver["cuts_per_pass"])
        yield ("solver", "cuts_per_pass"), f"solver.cuts_per_pass is {cuts}, expected beside {NAME} 1"
    if regularizer not in REGULARIZERS:
        yield (
            ("regularizer",),
            f"regularizer {regularizer} needs all weights in one place, beside {NAME} take {', '.join(REGULARIZERS)}",
        )
    if settings["search"] is not None:
        yield ("search",), f"search has several trainings, expected one beside {NAME}; leave it out"
    if settings["data"].get("guard") is not None:
        yield ("data", "guard"), f"data.guard and {NAME}: ranks that are guarded answer only rank 0; leave one out"


def refuse_slices(settings: Settings, what: str) -> None:
    """InputError where a config has slices, and `what` trains otherwise."""
    if settings["mpi"]["slices"]:
        raise InputError(f"{NAME}: {what} has no slices; {DOORS}")
