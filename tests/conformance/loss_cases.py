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
        prepared = self.prepare()
        width, extra = prepared.scores_per_row, prepared.extra_dim
        if extra:
            return (self.rows * width + extra,)
        return (self.rows,) if width == 1 else (self.rows, width)

    def split(self, f):
        """The scores of rows, and the parameters of the loss that stand behind them."""
        prepared = self.prepare()
        width, extra = prepared.scores_per_row, prepared.extra_dim
        return (f[:-extra].reshape(-1, width), f[-extra:]) if extra else (f, np.empty(0))

    def rows_of(self, f, rows):
        """The scores of some rows, with the parameters."""
        table, parameters = self.split(f)
        return np.concatenate((table[rows].ravel(), parameters)) if parameters.size else table[rows]

    def units(self):
        """What weights and permutations speak of: each row alone, or the rows of a sentence together."""
        if not self.loss.by_group:
            return [np.array([row]) for row in range(self.rows)]
        borders = np.flatnonzero(np.diff(self.targets.groups)) + 1
        return np.split(np.arange(self.rows), borders)

    def spread(self, draw):
        """Numbers for the rows, the same within a unit; `draw(n)` makes n of them."""
        units = self.units()
        return np.repeat(draw(len(units)), [len(unit) for unit in units])

    def copies(self, counts):
        """Rows such that each unit occurs so often, and their targets; `counts` as of `spread`."""
        pieces = [unit for unit in self.units() for _ in range(int(counts[unit[0]]))]
        rows = np.concatenate(pieces)
        targets = self.chosen(rows)
        if self.loss.by_group:
            targets = dataclasses.replace(targets, groups=np.repeat(np.arange(len(pieces)), list(map(len, pieces))))
        return rows, targets

    def predict(self, f, labels):
        """What the loss makes of scores, given all that a model would keep."""
        table, parameters = self.split(f)
        prepared = self.prepare()
        arrays = prepared.learned(f) if hasattr(prepared, "learned") else {}
        if parameters.size:
            arrays |= self.loss.named_parameters(parameters, len(labels))
        if self.loss.by_group:
            arrays["groups"] = self.targets.groups
        return self.loss.predict(table, labels, **arrays)

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
