"""A solver on all ranks at once, each with a slice of w; rank 0 asks for it, and leads before, between and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from bmrm.mpi.group import OtherRankError
from bmrm.mpi.multiplexed import MultiplexedRisk
from bmrm.mpi.requests import Answer
from bmrm.mpi.sliced import SlicedRisk
from bmrm.problem import BmrmError, Callback, Iteration, Risk, Solution, Start, State, Vector

NAME = "slices"
NUMBERS = tuple(each.name for each in fields(Iteration) if each.name not in ("w", "state", "iterate"))
"""Fields of a line of the history."""
Minimize = Callable[[Risk, "Vector | Start | None", "Callback | None"], Solution]


class Slices:
    """Collective to make, before rank 0 leads; then `solution` is called there.

    Parameters
    ----------
    risk : as the ranks share it, with all of w on rank 0.
    wrap : puts an intercept around it.
    minimize : the solver, for the risk of this rank's slice.
    """

    def __init__(self, risk: MultiplexedRisk, wrap: Callable[[Risk], Risk], minimize: Minimize) -> None:
        self._risk, self._wrap, self._minimize = risk, wrap, minimize
        self._ranks, self._group = risk.ranks, risk.group
        self._start: Vector | Start | None = None
        self._callback: Callback | None = None
        self._minimised: Any = None
        self._line: Iteration | None = None
        self._found: Solution | BmrmError | None = None
        self._state: State = {}
        self._constants: Vector | None = None
        self._ranks.put(NAME, self)

    # -- rank 0 ----------------------------------------------------------------------------------

    def solution(self, minimised: Any, start: Vector | Start | None, callback: Callback | None) -> Solution:
        """The solution, with all of w.

        Parameters
        ----------
        minimised : the risk that rank 0 leads, with its intercept.
        start, callback : as of `Solver`.
        """
        self._start, self._callback = start, callback
        self._whole = minimised
        self._ranks.ask(NAME, "run", int(callback is not None))
        if not isinstance(self._found, Solution):
            raise cast(BmrmError, self._found)
        return replace(self._found, w=self.gathered(end=True), planes=None)

    def gathered(self, end: bool = False) -> Vector:
        """The best point of the last line, or of the end; its constants become those of the risk that rank 0 leads."""
        w: Vector = self._ranks.array(NAME, "point", int(end), answer=Answer.GATHER)
        line = self._found if end else self._line
        if self._constants is not None:
            self._whole.settled.note(w, self._constants, cast(Any, line).objective)
        return w

    def asked_state(self) -> State:
        """What a later run needs to go on from the last line, besides w: no planes, of which nobody has all."""
        self._ranks.ask(NAME, "state")
        return self._state

    # -- every rank ------------------------------------------------------------------------------

    def run(self, watched: int) -> None:
        """Minimise; what a solver refuses it refuses on all ranks."""
        self._line = self._found = None
        try:
            sliced = SlicedRisk(self._risk, self._led)
            start, self._minimised = self._given(sliced.dim), self._wrap(sliced)
            self._found = self._minimize(self._minimised, start, self._told if watched else None)
        except BmrmError as error:
            self._found = error

    def point(self, end: int) -> Vector:
        """This rank's slice of a point; its constants are noted."""
        found: Any = self._found if end else self._line
        settled = getattr(self._minimised, "settled", None)
        self._constants = None if settled is None else settled.of(found.w)
        return cast(Vector, found.w)

    def state(self) -> None:
        """Note what the solver needs to go on from the last line."""
        line = self._line
        self._state = {} if line is None or line.state is None else line.state()

    def _told(self, line: Iteration) -> bool:
        """Have the callback of rank 0 judge the line."""
        self._line = line
        return bool(self._led(lambda: bool(cast(Callback, self._callback)(told(line, self)))))

    def _led(self, work: Callable[[], Any]) -> Any:
        """What rank 0 makes while the others answer it; on all ranks, as JSON has it."""
        ranks = self._ranks
        if self._group.rank != 0:
            if not ranks.serve():
                raise OtherRankError("rank 0 stopped with an error")
            return self._group.broadcast(None)
        ranks.broken = False
        try:
            found = work()
        except BaseException:
            if not ranks.broken:
                ranks.end(well=False)
            raise
        ranks.end(well=True)
        ranks.broken = True  # the others wait in the request for the whole run
        return self._group.broadcast(found)

    def _given(self, dim: int) -> Vector | Start | None:
        """The start of rank 0, cut to the slice of this rank, (dim,); of its state what is no array."""
        start, group = self._start, self._group
        plain = _plain(start) if isinstance(start, Start) else None
        given = group.broadcast([start is not None, plain])
        if not given[0]:
            return None
        w = start.w if isinstance(start, Start) else start
        mine = group.hand_out(w, dim)
        if given[1] is None:
            return mine
        bound, lines, state = given[1]
        history = tuple(Iteration(**dict(zip(NUMBERS, line, strict=True))) for line in lines)
        return Start(mine, bound, history, {name: np.array(value) for name, value in state.items()})


def _plain(start: Start) -> list[Any]:
    lines = [[getattr(line, name) for name in NUMBERS] for line in start.history]
    state = {name: array.item() for name, array in start.state.items() if np.ndim(array) == 0}
    return [float(start.lower_bound), lines, state]


class SlicedLine(Iteration):
    """A line of the history whose point is gathered when it is asked for."""

    @property
    def w(self) -> Vector | None:  # type: ignore[override]
        """As of `Iteration`."""
        own = vars(self)
        if "slices" not in own:
            return None
        if "gathered" not in own:
            own["gathered"] = own["slices"].gathered()
        return cast(Vector, own["gathered"])

    @w.setter
    def w(self, value: Vector | None) -> None:
        """Nothing: it is elsewhere."""


def told(line: Iteration, slices: Slices) -> SlicedLine:
    """The line, as callbacks on rank 0 get it."""
    found = SlicedLine(**{name: getattr(line, name) for name in NUMBERS}, state=slices.asked_state)
    vars(found)["slices"] = slices
    return found
