"""Link data as in Komarek's thesis (2004), section 5.1.3.2: which objects occur together, one being the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets
from bmrm.registry import check_parameters, parameter

Objects = NDArray[np.int64]


@dataclass(frozen=True)
class Links:
    """Rows of 0 and 1: the objects that occur together in a link; label 1 where the target was among them.

    A link is a list of related objects, such as the authors of a paper (`citeseer`) or the cast of a film (`imdb`).
    Each of the `groups` relates `members` objects, drawn without replacement and with equal chances from the
    `features` ones; the target belongs besides to `target_groups` of the groups. A link is a group drawn with equal
    chances, less each of its objects with probability `omitted`, and with a number of unrelated objects that is
    Poisson distributed with mean `unrelated`. Both kinds of noise meet the target like any other object. Then it is
    taken out of the data, and the label says whether it was there: for a share of about
    `target_groups / groups (1 - omitted) + unrelated / (features + 1)` of the rows.
    """

    name: ClassVar[str] = "links"
    rows: int = parameter(20_000, doc="links", least=1, example=50)
    features: int = parameter(5_000, doc="objects without the target", least=1, example=20)
    groups: int = parameter(500, doc="sets of related objects", least=1, example=30)
    members: int = parameter(6, doc="objects of a group without the target", least=1, example=3)
    target_groups: int = parameter(10, doc="groups that the target belongs to", least=0, example=300)
    omitted: float = parameter(0.25, doc="share of related objects left out", least=0.0, most=1.0, example=0.5)
    unrelated: float = parameter(0.5, doc="mean number of unrelated objects", least=0.0, most=1e6, example=2.0)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)
        for option, limit in (("members", "features"), ("target_groups", "groups")):
            if getattr(self, option) > getattr(self, limit):
                raise InputError(
                    f"synthetic:links: {option} is {getattr(self, option)}, expected at most"
                    f" {limit} ({getattr(self, limit)})"
                )

    def make(self) -> Dataset:
        """Labels 0 and 1; `X` is a `Csr` without values. A link may be empty."""
        rng = np.random.default_rng(self.seed)
        row, thing = self._related(rng)
        count = rng.poisson(self.unrelated, self.rows)
        row = np.concatenate((row, np.repeat(np.arange(self.rows), count)))
        thing = np.concatenate((thing, rng.integers(self.features + 1, size=count.sum())))
        y = np.zeros(self.rows)
        y[row[thing == self.features]] = 1.0
        seen = thing < self.features
        row, column = np.divmod(np.unique(row[seen] * self.features + thing[seen]), self.features)
        starts = np.searchsorted(row, np.arange(self.rows + 1)).astype(np.int64)
        return Dataset(Csr(starts, column.astype(np.int32), None, self.features), Targets(y))

    def _related(self, rng: np.random.Generator) -> tuple[Objects, Objects]:
        """Rows and objects, pair by pair, of what remains of the groups; the target is the object `features`."""
        members = np.stack(
            [rng.choice(self.features, self.members, replace=False, shuffle=False) for _ in range(self.groups)]
        )
        has_target = np.zeros(self.groups, bool)
        has_target[rng.choice(self.groups, self.target_groups, replace=False)] = True
        group = rng.integers(self.groups, size=self.rows)
        there = rng.random((self.rows, self.members + 1)) >= self.omitted
        there[:, -1] &= has_target[group]
        row, place = np.nonzero(there)
        things = np.column_stack((members, np.full(self.groups, self.features)))
        return row, things[group[row], place]
