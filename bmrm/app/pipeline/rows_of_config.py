"""Rows and problem of a config for a path or a cross-validation, which train several models: read by all ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bmrm.app.guarded import refuse_guard
from bmrm.app.pipeline.follow import refuse_stop
from bmrm.app.pipeline.load import PARTS, load
from bmrm.app.pipeline.several import loss_of_columns
from bmrm.app.pipeline.solve import Problem
from bmrm.app.pipeline.train import features_of, problem_of, with_loss
from bmrm.app.shares import are_shares
from bmrm.app.sliced import refuse_slices
from bmrm.data.dataset import Dataset
from bmrm.data.features._core.rows import Features
from bmrm.mpi.group import Group, together


@dataclass(frozen=True)
class RowsOfConfig:
    """What a config describes.

    Attributes
    ----------
    parts : this rank's rows, as they were read.
    problem : without measures that are followed; its loss is that of the targets.
    features : the map to other features; None for none.
    """

    parts: Mapping[str, Dataset]
    problem: Problem
    features: Features | None

    @classmethod
    def read(
        cls, settings: Mapping[str, Any], kept: Sequence[str], group: Group, what: str, quiet: bool
    ) -> RowsOfConfig:
        """Collective: read the rows, and say on rank 0 what was decided in reading them.

        Parameters
        ----------
        settings : `Settings.plain()`, the same on every rank.
        kept : names of the parts that are read.
        group : the ranks.
        what : is done, for messages.
        quiet : whether notes of reading are kept back.
        """
        section = {**settings["data"], **{part: None for part in PARTS if part not in kept}}
        if isinstance(section["offset"], Mapping):
            section["offset"] = {part: file for part, file in section["offset"].items() if part in kept}
        with together(group):
            refuse_guard(settings, what)
            refuse_slices(settings, what)
        loaded = load(section, settings["seed"], group)
        settings, notes = with_loss({**settings, "data": section}, loaded.train, group)
        with together(group):
            problem = problem_of(settings, leads=group.rank == 0)
            refuse_stop(problem.follow, what)
        for note in (*loaded.notes, *notes) if group.rank == 0 and not quiet else ():
            print(f"bmrm: {note}", file=sys.stderr)
        loss = loss_of_columns(problem.loss, section["classes"], section["labels"], loaded.train, group)
        problem = replace(problem, loss=loss, shares=are_shares(loaded.train, loss, group), follow=None)
        return cls(dict(loaded.parts), problem, features_of(settings))
