"""A cross-validation as a config and a command line describe it: rows are read once, by all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bmrm.app.guarded import refuse_guard
from bmrm.app.pipeline.rows_of_config import RowsOfConfig
from bmrm.app.pipeline.solve import Watch, unwatched
from bmrm.app.progress import Told
from bmrm.app.sliced import refuse_slices
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError
from bmrm.risk.scaling import SCALINGS
from bmrm.search._core.candidates import Values
from bmrm.search._core.crossing import Wanted, cross_validated
from bmrm.search._core.record import CrossValidation

WHAT = "cross-validation"
"""Is done, for messages."""


def validated(
    settings: Mapping[str, Any],
    tried: Sequence[Values],
    wanted: Wanted,
    group: Group,
    *,
    parallel: str = "rows",
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
    parallel : "rows" are shared out among ranks, or "folds": each rank then reads all rows.
    quiet : whether notes of reading are kept back.
    told : hears of progress, on rank 0.
    watch : surrounds each training.
    """
    if parallel == "rows":
        return _of_rows(settings, tried, wanted, group, None, quiet, told, watch)
    with together(group):
        refuse_guard(settings, WHAT)
        refuse_slices(settings, WHAT)
        if any("{rank" in name for name in settings["data"]["train"]):
            raise InputError("parallel: folds: every rank reads all rows, expected names without {rank}")
    return _of_rows(settings, tried, wanted, Alone(), group, quiet or group.rank != 0, told, watch)


def _of_rows(
    settings: Mapping[str, Any],
    tried: Sequence[Values],
    wanted: Wanted,
    group: Group,
    across: Group | None,
    quiet: bool,
    told: Told | None,
    watch: Watch,
) -> CrossValidation | None:
    """Collective: as `validated`, of the rows that the ranks of a group share out."""
    with together(across or Alone()):
        read = RowsOfConfig.read(settings, ("train",), group, WHAT, quiet)
        rows = SCALINGS[read.problem.scale].rows(read.parts["train"])
    return cross_validated(
        rows, read.problem, tried, wanted, group, features=read.features, across=across, watch=watch, told=told
    )
