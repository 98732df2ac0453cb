"""How Pegasos and its variants draw rows: uniformly, without the rows blamed too often, or those less often."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, State

Rows = NDArray[np.int64]


class Sampler:
    """Samples of `size` of the rows 0, ..., rows - 1, each without repetition.

    Parameters
    ----------
    rows, size, seed : as named.
    count : blames after which a row is removed (`TwoOut`).
    decay : factor of a row's chance with every blame (`Probability`).
    """

    judges: ClassVar[bool] = False
    """Whether steps must be judged, so that rows can be blamed."""

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        self.rows, self.size, self.count, self.decay = rows, size, count, decay
        self.random = np.random.default_rng(seed)

    def draw(self) -> Rows:
        """The rows of the next step; none when none is left."""
        return self._of(self.rows)

    def blame(self, rows: Rows) -> None:
        """These rows took part in a bad step."""

    def details(self) -> Mapping[str, Any]:
        """What became of the rows."""
        return {}

    def state(self) -> State:
        """What another one needs to go on from here."""
        return {"random": np.array(json.dumps(self.random.bit_generator.state))}

    def resume(self, state: State) -> None:
        """Go on from there; InputError where it is of another kind."""
        try:
            self.random.bit_generator.state = json.loads(str(state["random"]))
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(f"the state of the random numbers to go on from is another one: {error}") from error

    def _of(self, rows: int) -> Rows:
        if self.size >= rows:
            return np.arange(rows)
        return self.random.choice(rows, self.size, replace=False, shuffle=False)


class Undo(Sampler):
    """As `Sampler`; bad steps matter, rows do not."""

    judges = True


class TwoOut(Sampler):
    """A row is removed for good at the `count`-th blame."""

    judges = True

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        super().__init__(rows, size, seed, count, decay)
        self._left: Rows = np.arange(rows)
        self._blames = np.zeros(rows, np.int64)

    def draw(self) -> Rows:
        return self._left[self._of(self._left.size)]

    def blame(self, rows: Rows) -> None:
        self._blames[rows] += 1
        if np.any(self._blames[rows] >= self.count):
            self._left = np.flatnonzero(self._blames < self.count)

    def state(self) -> State:
        return {**super().state(), "rows_blames": self._blames}

    def resume(self, state: State) -> None:
        super().resume(state)
        if "rows_blames" in state:
            self._blames = np.array(state["rows_blames"], np.int64)
            self._left = np.flatnonzero(self._blames < self.count)

    def details(self) -> Mapping[str, Any]:
        return {"removed": np.flatnonzero(self._blames >= self.count)}


class Probability(Sampler):
    """A row's chance is 1 at first, and `decay` times less with every blame."""

    judges = True

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        super().__init__(rows, size, seed, count, decay)
        self._logs = np.zeros(rows)

    def draw(self) -> Rows:
        if self.size >= self.rows:
            return np.arange(self.rows)
        # the largest of log chance + Gumbel noise: a sample without repetition, each next row by its chance
        keys = self._logs + self.random.gumbel(size=self.rows)
        return np.sort(np.argpartition(keys, self.rows - self.size)[self.rows - self.size :])

    def blame(self, rows: Rows) -> None:
        self._logs[rows] += np.log(self.decay)

    def state(self) -> State:
        return {**super().state(), "rows_logs": self._logs}

    def resume(self, state: State) -> None:
        super().resume(state)
        if "rows_logs" in state:
            self._logs = np.array(state["rows_logs"], np.float64)

    def details(self) -> Mapping[str, Any]:
        return {"chance": np.exp(self._logs)}


VARIANTS: Mapping[str, type[Sampler]] = {
    "plain": Sampler,
    "undo": Undo,
    "two_out": TwoOut,
    "probability": Probability,
}
