"""Every registered loss, with generated targets and scores that its properties are tried on."""

import dataclasses

import numpy as np

from bmrm.losses import LOSSES
from bmrm.problem import Targets

CLASSES = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """A loss, targets that it takes, and generators of scores."""

    loss: object
    targets: Targets

    @property
    def rows(self):
        return self.targets.rows

    @property
    def decomposes(self):
        return self.loss.decomposes == "rows"

    def summary(self):
        return self.loss.summarise(self.targets)

    def prepare(self, targets=None, summary=None):
        targets = self.targets if targets is None else targets
        return self.loss.prepare(targets, self.loss.summarise(targets) if summary is None else summary)

    def shape(self):
        width = self.prepare().scores_per_row
        return (self.rows,) if width == 1 else (self.rows, width)

    def generic_scores(self, seed=0):
        """Random scores, on no kink and in no tie."""
        return np.random.default_rng(seed).normal(size=self.shape()) * 2.0

    def all_scores(self, seed=1):
        """Random ones and adversarial ones: zeros, ties, kinks (whole numbers, the targets themselves), +-1000."""
        rng, shape = np.random.default_rng(seed), self.shape()
        whole = rng.integers(-2, 3, size=shape).astype(float)
        scores = [self.generic_scores(seed), 0.1 * self.generic_scores(seed + 1), np.zeros(shape), whole, whole + 0.5]
        scores += [np.where(rng.random(shape) < 0.5, 1000.0, -1000.0), np.full(shape, 1000.0), np.full(shape, -1000.0)]
        if self.loss.task == "regression":
            y = np.asarray(self.targets.y, float)
            scores += [y, y + 0.5, y - 0.5]
        return scores

    def with_targets(self, y, weights=None):
        return Case(self.loss, Targets(y, weights))


def targets_of(task, rows=36, seed=3):
    """Targets of a task; those of regression are partly whole numbers, so that scores can meet them."""
    rng = np.random.default_rng(seed)
    if task == "binary":
        return np.where(rng.random(rows) < 0.4, 1.0, -1.0)
    if task == "multiclass":
        return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES
    y = rng.integers(-2, 3, size=rows).astype(float)
    y[::3] += rng.normal(size=y[::3].shape)
    return y


def case_of(loss):
    return Case(loss, Targets(targets_of(loss.task)))


def losses():
    """Each registered loss with its defaults, and once more with every parameter at its example."""
    for entry in LOSSES.all():
        yield entry.cls()
        examples = {
            field.name: field.metadata["example"]
            for field in entry.parameters
            if field.metadata.get("example") is not None
        }
        if examples:
            yield entry.cls(**examples)
