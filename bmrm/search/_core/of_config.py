"""A cross-validation as a config and a command line describe it: rows are read once, by all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bmrm.app.pipeline.rows_of_config import RowsOfConfig
from bmrm.app.pipeline.solve import Watch, unwatched
from bmrm.app.progress import Told
from bmrm.mpi.group import Group
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
    read = RowsOfConfig.read(settings, ("train",), group, "cross-validation", quiet)
    problem = read.problem
    rows = SCALINGS[problem.scale].rows(read.parts["train"])
    return cross_validated(rows, problem, tried, wanted, group, features=read.features, watch=watch, told=told)
