"""A cross-validation as a config and a command line describe it: rows are read once, by all ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bmrm.app.pipeline.features import Featured
from bmrm.app.pipeline.follow import refuse_stop
from bmrm.app.pipeline.load import load
from bmrm.app.pipeline.several import loss_of_columns
from bmrm.app.pipeline.solve import Watch, unwatched
from bmrm.app.pipeline.train import features_of, problem_of, with_loss
from bmrm.app.progress import Told
from bmrm.app.shares import are_shares
from bmrm.mpi.group import Group, together
from bmrm.risk.scaling import SCALINGS
from bmrm.search._core.candidates import Values
from bmrm.search._core.crossing import Wanted, cross_validated
from bmrm.search._core.record import CrossValidation


def validated(
    settings: Mapping[str, Any],
    tried: Sequence[Values],
    wanted: Wanted,
    group: Group,
    *,
    quiet: bool = False,
    told: Told | None = None,
    watch: Watch = unwatched,
) -> CrossValidation | None:
    """Collective: the result, on rank 0; None elsewhere.

    Parameters
    ----------
    settings : `Settings.plain()`, the same on every rank; `data.train` is divided, other parts are not looked at.
    tried : values of the fields that are searched; [] for the config as it is.
    wanted : folds, measures, choice.
    group : the ranks.
    quiet : whether notes of reading are kept back.
    told : hears of progress, on rank 0.
    watch : surrounds each training.
    """
    section = {**settings["data"], "validation": None, "test": None}
    if isinstance(section["offset"], Mapping):
        section["offset"] = section["offset"]["train"]
    settings = {**settings, "data": section}
    loaded = load(section, settings["seed"], group)
    settings, notes = with_loss(settings, loaded.train, group)
    with together(group):
        problem = problem_of(settings, leads=group.rank == 0)
        refuse_stop(problem.follow, "cross-validation")
    for note in (*loaded.notes, *notes) if group.rank == 0 and not quiet else ():
        print(f"bmrm: {note}", file=sys.stderr)
    data = settings["data"]
    loss = loss_of_columns(problem.loss, data["classes"], data["labels"], loaded.train, group)
    shares = are_shares(loaded.train, loss, group)
    problem = replace(problem, loss=loss, shares=shares, follow=None)
    rows, mapping = SCALINGS[problem.scale].rows(loaded.train), features_of(settings)
    if mapping is None:
        return cross_validated(rows, problem, tried, wanted, group, watch=watch, told=told)
    featured = Featured.of(mapping, {"train": rows}, problem.scale, group, problem.threads)
    rows, problem = featured.parts["train"], featured.problem(problem)
    return of_raw_rows(cross_validated(rows, problem, tried, wanted, group, watch=watch, told=told), featured)


def of_raw_rows(found: CrossValidation | None, featured: Featured) -> CrossValidation | None:
    """The result, whose model takes rows before the map of their features."""
    if found is None or found.model is None:
        return found
    return replace(found, model=featured.model(found.model))
