"""The history of a run on one rank, with what it would say to others: what a prediction is made from."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

DEALS = 50
"""Deals of groups to ranks, over which the share of the most loaded rank is averaged."""


class Strict(BaseModel):
    """A record that is read from a file: other fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Shape(Strict):
    """How large a problem is.

    Attributes
    ----------
    rows, entries : of the data, over all ranks.
    dim : length of the vector of weights.
    scores : of a row.
    """

    rows: int
    entries: int
    dim: int
    scores: int = 1


class Step(NamedTuple):
    """An iteration, or what was verified after the last.

    Attributes
    ----------
    passes : over the data.
    shared : seconds that the ranks compute, each with its rows.
    alone : seconds of rank 0 in the risk besides, such as those of a loss of the whole sample.
    master : seconds of rank 0 in the master problem.
    rest : its other seconds, in which it computes with vectors.
    planes : in the master.
    short : messages of a few numbers, requests included.
    vectors : of `dim` numbers that are sent to all or added up over all.
    gathered : numbers of rows that come to rank 0 or go from it.
    """

    passes: float
    shared: float
    alone: float
    master: float
    rest: float
    planes: int
    short: int
    vectors: float
    gathered: int

    @property
    def seconds(self) -> float:
        """Of all parts."""
        return self.shared + self.alone + self.master + self.rest


class Recording(Strict):
    """A run on one rank and one thread, from its start to its end.

    Attributes
    ----------
    problem, solver : names.
    shape : of what was solved.
    whole_sample : whether rank 0 computes the loss, from the scores of all rows.
    fixed : seconds of a pass that has next to no rows: of vectors of weights alone.
    bare_master, bare_rest : seconds of a step in a run that has next to no features: they do not grow with these.
    groups : entries of each group of rows, which stays on one rank; empty where every row is one.
    steps : in their order.
    """

    problem: str
    solver: str
    shape: Shape
    whole_sample: bool = False
    fixed: float = 0.0
    bare_master: float = 0.0
    bare_rest: float = 0.0
    groups: tuple[int, ...] = ()
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """Of all parts."""
        return sum(step.seconds for step in self.steps)

    @property
    def passes(self) -> float:
        """Of all steps."""
        return sum(step.passes for step in self.steps)

    @property
    def planes(self) -> int:
        """The most that there were."""
        return max(step.planes for step in self.steps)

    @cached_property
    def rate(self) -> float:
        """Entries that a pass goes through in a second; searches along scores count with the passes."""
        seconds = sum(max(0.0, step.shared - step.passes * self.fixed) for step in self.steps)
        return self.shape.entries * self.passes / max(seconds, 1e-300)

    def largest_share(self, ranks: int) -> float:
        """Share of the entries that the most loaded of so many ranks has, where groups are dealt by chance."""
        if not self.groups:
            rows = self.shape.rows
            return -(-rows // ranks) / rows
        sizes, places = np.array(self.groups, float), np.arange(len(self.groups)) % ranks
        deals = (np.random.default_rng(seed).permutation(places) for seed in range(DEALS))
        return float(np.mean([np.bincount(deal, sizes, ranks).max() for deal in deals]) / sizes.sum())
