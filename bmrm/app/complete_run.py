"""Link completion as a config describes it: every rank reads all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bmrm.app.defaults import default_bias
from bmrm.app.guarded import refuse_guard
from bmrm.app.pipeline.load import load
from bmrm.app.pipeline.solve import Problem
from bmrm.app.pipeline.train import features_of, problem_of
from bmrm.app.sliced import refuse_slices
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError

LOSS = "logistic"
"""Of the trainings, where a config names none."""


def read(settings: Mapping[str, Any], group: Group) -> tuple[Dataset, Dataset, Problem, tuple[str, ...]]:
    """Collective: complete rows, those to be completed, the problem, and what was decided in reading them.

    Parameters
    ----------
    settings : `Settings.plain()`; `data.test` are the rows to be completed. Targets are ignored.
    group : the ranks.

    Raises
    ------
    InputError
        For a guard, of the config or of an owner; for a map of features, unit norms, columns of targets, and files that
        each rank has for itself.
    """
    with together(group):  # before any rank reads
        refuse_guard(settings, "`bmrm complete`")
        refuse_slices(settings, "`bmrm complete`")
    with together(group):
        return _read(settings)


def _read(settings: Mapping[str, Any]) -> tuple[Dataset, Dataset, Problem, tuple[str, ...]]:
    section = settings["data"]
    if features_of(settings) is not None:
        raise InputError("data.features is not for `bmrm complete`: each feature is a target")
    if any("{rank" in name for name in section["train"]):
        raise InputError("data.train: every rank of `bmrm complete` reads all rows, expected names without {rank}")
    for name, plain in (("classes", "together"), ("labels", "together"), ("class_weight", None), ("offset", None)):
        if section[name] != plain:
            raise InputError(f"data.{name} is not for `bmrm complete`: the targets are the features")
    if section["scale"] == "unit_norm":
        raise InputError("data.scale: unit_norm is not for `bmrm complete`, whose rows lack one feature each time")
    if settings["loss"] is None:
        loss = LOSSES.make(LOSS)
        bias = default_bias(loss) if section["bias"] is None else section["bias"]
        settings = {**settings, "loss": LOSSES.describe(loss), "data": {**section, "bias": bias}}
    problem = replace(problem_of(settings), follow=None, positive_label=None, share_rows=False)
    loaded = load({**section, "validation": None}, settings["seed"], Alone())
    return loaded.train, loaded.parts["test"], problem, loaded.notes
