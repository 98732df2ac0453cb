"""What every rank, rank 0 too, keeps, and how it answers requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.compiling import COMPILING, working_clock
from bmrm.mpi.requests import Answer, Kept, Request, RequestError, Scattered, Terms
from bmrm.mpi.share import Rank

FEW = 1 << 12
"""Numbers above which a single array is reduced as it is, without a copy that has room for one more."""
SCORES = "scores"
"""Kind of the arrays of which rank 0 forms linear combinations."""
SAMPLE = "sample"
"""Kind of the objects of some of the rows, `LocalObjects`."""


@dataclass(frozen=True)
class Kind:
    """Objects of one kind.

    Attributes
    ----------
    find : the one that a rank has under the name of the kind; None where they are all kept by number. It takes the
        `Rank`, or, for a guarded one, its `bmrm.mpi.guarded.Watch`.
    methods : which of them a request may name, and the kind of what the result is where that is kept.
    """

    find: Callable[[Any], Any] | None
    methods: Mapping[str, str]


class LocalObjects:
    """The objects of one rank, by name or by number.

    Parameters
    ----------
    rank : what there is.
    kinds : by name.
    """

    def __init__(self, rank: Rank, kinds: Mapping[str, Kind]) -> None:
        self.rank, self._kinds = rank, kinds
        self._named: dict[str, Any] = {}
        self._kept: dict[int, tuple[str, Any]] = {}
        """Kind and object."""
        self._since = self._busy = 0.0
        self._compiled = COMPILING.seconds
        """Up to the last comparison with other ranks."""

    def answer(self, request: Request, keeps: str) -> list[Any]:
        """Carry out a request, which is allowed; on rank 0 the results, None for those kept, elsewhere nothing of use.

        `keeps` is what `kind_made` says of it.
        """
        self._since = self._clock()
        found = self._answer(request, keeps)
        self._work()
        return found

    def _clock(self) -> float:
        """Without the time that this rank has waited, or compiled."""
        return working_clock() - self.rank.group.waited

    def _work(self) -> float:
        """The seconds computed since these were last compared with those of other ranks."""
        now = self._clock()
        self._busy += now - self._since
        self.rank.group.busy += now - self._since
        self._since = now
        return self._busy

    def _answer(self, request: Request, keeps: str) -> list[Any]:
        return self._dealt_with(self._result(request), request.answer, keeps)

    def _result(self, request: Request) -> Any:
        """What the method returns, before any of it goes to another rank."""
        for number, terms in request.define.items():
            self._kept[number] = SCORES, self._combine(terms)
        for number in request.forget:
            self._kept.pop(number, None)
        target = request.target
        if isinstance(target, Request):
            self._answer(target, self.kind_made(target))
            target = cast(Kept, target.answer[0]).number
        found = self.kept(target) if isinstance(target, int) else self.named(target)
        return getattr(found, request.method)(*[self._value(argument) for argument in request.arguments])

    def kind_made(self, request: Request) -> str:
        """The kind of the result; RequestError where the request is not allowed."""
        target = request.target
        kind = self.kind_made(target) if isinstance(target, Request) else target
        if isinstance(kind, int):
            kind = self._entry(kind)[0]
        known = self._kinds.get(kind)
        if known is None or request.method not in known.methods:
            raise RequestError(f"the ranks allow no request for {request.method!r} of {kind!r}")
        return known.methods[request.method]

    def named(self, name: str) -> Any:
        """This rank's object of that name."""
        if name not in self._named:
            find = self._kinds[name].find
            found = None if find is None else self._found(find)
            if found is None:
                raise RequestError(f"this rank has no {name!r}")
            self._named[name] = found
        return self._named[name]

    def _found(self, find: Callable[[Any], Any]) -> Any:
        return find(self.rank)

    def put(self, name: str, found: Any) -> None:
        """Have this object under a name of a kind that finds none itself."""
        self._named[name] = found

    def of(self, path: Sequence[int]) -> LocalObjects:
        """These, or those of a sample that is kept, of a sample of it and so on."""
        found = self
        for number in path:
            kind, inner = found._entry(number)
            if kind != SAMPLE:
                raise RequestError(f"what the ranks keep under the number {number} is no sample")
            found = inner
        return found

    @property
    def held(self) -> int:
        """How many objects this rank keeps for rank 0."""
        return len(self._kept)

    def kept(self, number: int) -> Any:
        """What is kept under the number."""
        return self._entry(number)[1]

    def _entry(self, number: int) -> tuple[str, Any]:
        if number not in self._kept:
            raise RequestError(f"the ranks keep nothing under the number {number}")
        return self._kept[number]

    def _combine(self, terms: Terms) -> NDArray[np.float64]:
        (first, factor), *rest = terms
        total: NDArray[np.float64] = factor * self.kept(first)
        for number, weight in rest:
            total += weight * self.kept(number)
        return total

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, Kept):
            return self.kept(argument.number)
        if isinstance(argument, Scattered):
            return self.rank.group.hand_out(argument.whole, self.rank.score_rows)
        return argument

    def _dealt_with(self, result: Any, answer: tuple[Answer | Kept, ...], keeps: str) -> list[Any]:
        results: Sequence[Any] = (result,) if len(answer) == 1 else _several(result) if answer else ()
        outcomes: list[Any] = [None] * len(results)
        summed = []
        for k, what in enumerate(answer):
            if isinstance(what, Kept):
                self._kept[what.number] = keeps, results[k]
            elif what is Answer.SUM:
                summed.append(k)
        if summed:
            for k, total in zip(summed, self._added_up([results[k] for k in summed]), strict=True):
                outcomes[k] = total
        for k, what in enumerate(answer):
            if what is Answer.STREAM:
                outcomes[k] = self._streamed(results[k])
            elif what is Answer.GATHER:
                outcomes[k] = self._gathered(results[k])
        return outcomes

    def _added_up(self, parts: list[Any]) -> list[Any]:
        """All in one reduction, and with them how long the ranks have computed, and those other than 0 compiled."""
        group, busy = self.rank.group, self._work()
        if len(parts) == 1 and isinstance(parts[0], np.ndarray) and parts[0].size > FEW:
            return [group.add_up(parts[0].reshape(-1)).reshape(parts[0].shape)]
        flat = [part.reshape(-1) if isinstance(part, np.ndarray) else (part,) for part in parts]
        compiled, self._compiled = COMPILING.seconds - self._compiled, COMPILING.seconds
        times = busy, compiled if group.rank != 0 else 0.0
        total, first, sums = group.add_up(np.concatenate([*flat, times], dtype=np.float64)), 0, []
        if group.rank == 0:
            group.compare(busy, float(total[-2]), float(total[-1]))
        self._busy = 0.0
        for part, numbers in zip(parts, flat, strict=True):
            last = first + len(numbers)
            sums.append(total[first:last].reshape(part.shape) if isinstance(part, np.ndarray) else float(total[first]))
            first = last
        return sums

    def _streamed(self, pieces: Iterable[tuple[slice, NDArray[np.float64]]]) -> NDArray[np.float64]:
        dim, group = self.rank.share.dim, self.rank.group
        part = np.empty(dim)
        if group.masks is not None:  # what goes piece by piece is not masked
            for where, numbers in pieces:
                part[where] = numbers
            return group.add_up(part)
        total = np.empty(dim) if group.rank == 0 else None
        requests: list[Any] = []
        for where, numbers in pieces:
            part[where] = numbers
            requests += group.start_adding(part[where], None if total is None else total[where])
            for request in requests:
                request.Test()
        group.wait(*requests)
        return part if total is None else total

    def _gathered(self, part: Any) -> Any:
        group = self.rank.group
        return group.gather_array(part) if isinstance(part, np.ndarray) else group.gather(part)


def _several(result: Any) -> Sequence[Any]:
    """The results of a method that has several: a tuple, or a record."""
    if isinstance(result, tuple) or not is_dataclass(result):
        return tuple(result)
    return [getattr(result, each.name) for each in fields(result)]
