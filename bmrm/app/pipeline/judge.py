"""What a model that rank 0 has trained says of rows of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bmrm.app.measure import scored, scores_of
from bmrm.app.model import Model
from bmrm.app.pipeline.solve import Problem
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group

if TYPE_CHECKING:
    from bmrm.metrics import ScoredRows


def judged(model: Model | None, problem: Problem, rows: Dataset, group: Group, part: str) -> ScoredRows | None:
    """Collective: these rows of all ranks as measures take them, on rank 0; None elsewhere.

    Parameters
    ----------
    model : on rank 0.
    problem : that it was trained for.
    rows : of this rank; `data.scale: unit_norm` has been applied to them.
    part : what they are, for messages.
    """
    labels = group.broadcast(None if model is None else model.label_codes)
    weights = group.broadcast_array(None if model is None else model.weights)
    intercept = group.broadcast_array(None if model is None else model.intercept)
    scores = scores_of(rows, weights, intercept, problem.threads or group.cores_per_rank)
    loss = problem.loss if model is None else model.loss
    arrays = None if model is None else model.arrays
    return scored(scores, rows.targets, loss, labels, group, arrays=arrays, part=part)
