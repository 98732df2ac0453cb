"""What a config may not ask for beside `data.guard`, said before rows are read, on rank 0 and by each owner's rank."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import Group, together
from bmrm.mpi.guard import NAME, Guard, refuse_rare
from bmrm.problem import InputError, provides, shown
from bmrm.problem.loss import HasThreshold

VARIABLE = "BMRM_GUARD"
"""Environment variable in which an owner says what a job must hold back at least, whatever its config says."""
Settings = Mapping[str, Any]
Place = tuple[str, ...]

GUARDED_DOORS = "`bmrm train` and `python -m bmrm.run` are"
GUARDED_TOO = "lbfgs, newton, bundle and line_search_bundle ask for sums over all rows"
WITHOUT: Mapping[str, str] = {
    "dual_coordinate": "it takes steps of single rows",
    "pegasos": "it evaluates rows that it chooses",
    "coordinate_descent": "it reads single columns",
    "semismooth_newton": "it asks for rows near a kink",
    "proximal_newton": "it asks for products of two features",
}
"""Solvers that cannot go by sums over all rows of a rank, and why."""
OPTIONS: Mapping[tuple[str, str], tuple[Callable[[Any], bool], str]] = {
    ("bundle", "cuts_per_pass"): (lambda given: given > 1, "1, since its planes would be of few rows"),
    ("line_search_bundle", "search"): (lambda given: given == "exact", "bracket, since it would ask for scores"),
    ("probe", "dormant"): (bool, "false, since it would choose rows"),
    ("newton", "hessian"): (lambda given: given in ("dense", "rows"), "cg or auto"),
    ("irls", "holdout_size"): (bool, "0, since it would choose rows"),
}
"""Options of solvers that would: whether a value does, and what was expected."""
SCORES: Mapping[Place, str] = {
    ("data", "validation"): "rows that are measured",
    ("data", "test"): "rows that are measured",
    ("output", "metrics"): "measures",
    ("output", "follow"): "measures",
    ("solver", "stop"): "measures",
    ("calibrate",): "calibration",
    ("search",): "a search",
}
"""Fields that would have scores go to rank 0, and what asks for them."""


def refusals(settings: Settings) -> Iterator[tuple[Place, str]]:
    """The fields that do not go with the guard of a checked config, and why; none where there is no guard."""
    data = settings["data"]
    if Guard.checked(data.get("guard")) is None:
        return
    for place, what in SCORES.items():
        if _at(settings, place) is not None:
            yield place, f"{'.'.join(place)}: {what} would gather scores on rank 0, which {NAME} forbids; leave it out"
    if data["share_rows"]:
        yield ("data", "share_rows"), f"data.share_rows is true, which {NAME} forbids; leave it out"
    if data["scale"] == "max_abs":
        yield ("data", "scale"), f"data.scale: max_abs tells numbers of single rows, which {NAME} forbids"
    if data["features"] is not None:
        yield ("data", "features"), f"data.features is not served beside {NAME}; make features before"
    yield from _of_loss(settings["loss"])
    yield from _of_solver(settings["solver"])


def _at(settings: Settings, place: Place) -> Any:
    found: Any = settings
    for name in place:
        found = found[name]
    return found


def _of_loss(section: Settings | None) -> Iterator[tuple[Place, str]]:
    if section is None:
        yield ("loss",), f"loss is null, which would be told by the targets; beside {NAME} name one"
        return
    loss, why = LOSSES.instance(section), ""
    if loss.decomposes == "no":
        why = "is no sum over rows: it would gather scores on rank 0"
    elif provides(loss, HasThreshold):
        why = "has a threshold that is fitted to scores"
    if why:
        yield ("loss",), f"loss {section['name']} {why}, which {NAME} forbids; take one that is a sum over rows"


def _of_solver(section: Settings) -> Iterator[tuple[Place, str]]:
    name = section["name"]
    if name in WITHOUT:
        yield ("solver",), f"solver {name}: {WITHOUT[name]}, which {NAME} forbids; {GUARDED_TOO}"
    for (solver, option), (refused, wanted) in OPTIONS.items():
        if solver == name and refused(section[option]):
            yield (
                ("solver", option),
                f"solver.{option} is {shown(section[option])}, expected beside {NAME} {wanted}",
            )


def guard_of(settings: Settings, group: Group) -> Guard | None:
    """Collective: the guard of this job, None for none or where one process has all rows.

    Each rank judges the config itself, and by what its owner has asked for in its environment.

    Raises
    ------
    InputError
        The config does not go with its guard, or holds back less than an owner asks for.
    """
    guard = Guard.checked(settings["data"].get("guard"))
    with together(group):
        wanted = wanted_here()
        if wanted is not None and (guard is None or not guard.grants(wanted)):
            there = "no guard" if guard is None else shown(guard.plain())
            raise InputError(
                f"the owner of this rank asks for {NAME}: {shown(wanted.plain())} ({VARIABLE}), the job has {there}"
            )
        if guard is not None and group.size > 1:
            for _, why in refusals(settings):
                raise InputError(why)
            if guard.secure_sums and group.size < 3:
                raise InputError(f"{NAME}: secure_sums needs three ranks or more: of two, one knows the other's part")
    return guard if group.size > 1 else None


def check_rows(data: Dataset, guard: Guard, group: Group) -> None:
    """Collective: InputError where a rank has too few rows, or where one alone adds to those of rank 0."""
    with together(group):
        refuse_rare(data, guard)
    owners = group.gather(data.rows > 0)
    with together(group):
        if guard.secure_sums and owners is not None and sum(owners[1:]) < 2:
            raise InputError(
                f"{NAME}: secure_sums needs two ranks or more with rows beside rank 0, whose part is known there"
            )


def refuse_guard(settings: Settings, what: str) -> None:
    """InputError where a config, or the owner here, has a guard, and `what` trains otherwise."""
    if Guard.checked(settings["data"].get("guard")) is not None:
        raise InputError(f"{NAME}: {what} is not guarded; {GUARDED_DOORS}")
    refuse_of_owner(f"{what} is not guarded; {GUARDED_DOORS}")


def refuse_of_owner(why: str) -> None:
    """InputError where the owner of this rank has asked for a guard; `why` this is none."""
    wanted = wanted_here()
    if wanted is not None:
        raise InputError(f"the owner of this rank asks for {NAME}: {shown(wanted.plain())} ({VARIABLE}), but {why}")


def wanted_here() -> Guard | None:
    """What the owner of this rank has asked for."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{VARIABLE} is {shown(text)}, which is no YAML") from error
    return Guard.checked(found, VARIABLE)
