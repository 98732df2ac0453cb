"""Searches over several trainings, a file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bmrm.app.model import Model
from bmrm.app.pipeline.solve import Problem, Watch
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group
from bmrm.registry import SEARCHES

register = SEARCHES.register


class Search(Protocol):
    """A frozen dataclass of options that trains several models and keeps one."""

    def fit(
        self, parts: Mapping[str, Dataset], problem: Problem, group: Group, watch: Watch
    ) -> tuple[Model | None, dict[str, Any]]:
        """Collective: the model, and what `summary.json` says of the search; (None, {}) but on rank 0.

        Parameters
        ----------
        parts : `train`, and `validation` and `test` where the config names them.
        problem : loss, regularizer, solver and the rest of the config.
        group : all ranks.
        watch : gives each fit its callback.
        """
        ...
