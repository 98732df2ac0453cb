"""Run under mpirun on three ranks, the second without rows: every measure of one model of each task.

Rank 0 prints one JSON line: by loss the measures over all ranks, and those of the same rows on one rank.
"""

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np

from bmrm.app.model import Model
from bmrm.app.pipeline import measuring
from bmrm.app.pipeline.measuring import measure_parts
from bmrm.checks.plug_in import groups_for, targets_for
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.metrics import fitting
from bmrm.mpi.group import Alone
from bmrm.mpi.launch import open_group
from bmrm.problem import provides
from bmrm.problem.loss import HasMeasured, HasParameters
from tests.targets import default_instance

CASES = (
    "hinge",
    "poisson",
    "gamma",
    "multiclass_hinge",
    "multilabel_hinge",
    "ontology_hinge",
    "rank_hinge",
    "ordinal_thresholds",
    "chain_crf",
    "softmax",
    "multivariate_least_squares",
    "novelty",
)
ROWS, BORDERS = 90, (0, 40, 40, 90)
WEIGHTED = ("hinge", "poisson", "multiclass_hinge")


def main(_):
    group, answers = open_group(), {}
    for name in CASES:
        loss = default_instance(LOSSES.get(name))
        rows, model = case(loss, name in WEIGHTED)
        names = [f"{one.stem}@1.5" if one.needs_number(loss) else one.name for one in fitting(loss)]
        mine = rows.part(BORDERS[group.rank], BORDERS[group.rank + 1])
        led = model if group.rank == 0 else None
        shared = measure_parts(led, loss, {"test": mine}, group, names)
        if group.rank == 0:
            alone = measure_parts(model, loss, {"test": rows}, Alone(), names)
            tables = [one.table["test"] for one in (shared, alone)]
            answers[name] = [*tables, *(one.curves["curves"] for one in (shared, alone))]
    patched = mock.patch.object(measuring, "scores_of", without_memory)
    with patched if group.rank == 1 else nullcontext():
        short = measure_parts(led, loss, {"train": mine, "test": mine}, group)
    if group.rank == 0:
        answers["short of memory"] = [short.table, short.curves, short.missing]
        print(json.dumps(answers))


def without_memory(*arguments):
    """In place of scores."""
    raise MemoryError("nothing is left")


def case(loss, weighted):
    """Rows, and a model of them that nobody has trained."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 4))
    y = targets_for(loss, ROWS)
    if loss.task == "sequence":
        y = np.array(["B-A", "I-A", "O"])[y.astype(int)]
    data = Dataset.from_arrays(X, y, random.random(ROWS) + 0.1 if weighted else None)
    data = replace(data, targets=replace(data.targets, groups=groups_for(loss, ROWS)))
    targets = data.targets
    summary = loss.summarise(targets)
    prepared = loss.prepare(targets, summary)
    labels = np.array(summary.labels)
    per_row = prepared.scores_per_row
    weights = random.normal(size=4 if per_row == 1 else (4, per_row))
    arrays = {}
    if provides(loss, HasParameters):
        arrays = loss.named_parameters(random.normal(size=loss.extra_parameters(len(labels))), len(labels))
    if not provides(loss, HasMeasured) and loss.task == "ordinal":
        arrays = {"cut_points": np.linspace(-1.0, 1.0, len(labels) - 1)}
    if loss.task == "sequence":  # labels that the model does not know
        targets.y[[3, 50, 51]] = "I-C", "B-C", "I-C"
    header = {"loss": LOSSES.describe(loss)}
    return data, Model(weights, np.zeros(per_row), labels, header, _loss=loss, arrays=arrays)


if __name__ == "__main__":
    main(sys.argv[1:])
