"""Every registered loss, with generated targets and scores that its properties are tried on."""

import dataclasses

import numpy as np

from bmrm.data.labels import LabelSets
from bmrm.problem import Targets
from tests.targets import groups_for, targets_for


@dataclasses.dataclass(frozen=True)
class Case:
    """A loss, targets that it takes, and generators of scores."""

    loss: object
    targets: Targets

    @property
    def rows(self):
        return self.targets.rows

    @property
    def by_rows(self):
        return self.loss.decomposes == "rows"

    def chosen(self, rows):
        """The targets of some rows, without weights."""
        return Targets(self.targets.y[rows], None, None if self.targets.groups is None else self.targets.groups[rows])

    def weighing(self, weights):
        """The targets with weights."""
        return Targets(self.targets.y, weights, self.targets.groups)

    def with_y(self, y):
        """Other targets, the groups as they are."""
        return Targets(y, None, self.targets.groups)

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
        if self.loss.task in ("regression", "multivariate"):
            y = np.asarray(self.targets.y, float)
            scores += [y, y + 0.5, y - 0.5]
        return scores

    def plain_targets(self):
        """One number, name, list or set of positions per row, as the slow twins take them."""
        y = self.targets.y
        if isinstance(y, LabelSets):
            return [{int(k) for k in np.flatnonzero(row)} for row in y.indicator(np.array(self.summary().labels))]
        if self.targets.groups is not None:
            return list(zip(self.targets.groups.tolist(), y.tolist(), strict=True))
        return (y.astype(int) if self.loss.task == "multiclass" else y).tolist()


def case_of(loss):
    return Case(loss, Targets(targets_for(loss), None, groups_for(loss)))
