"""All ranks, as rank 0 asks them and as the others answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.guard import Guarding, RefusedError
from bmrm.mpi.guarded import GuardedObjects
from bmrm.mpi.local import Kind, LocalObjects
from bmrm.mpi.requests import Answer, Kept, Request, Terms, encode, plain_array, receive, send
from bmrm.mpi.scores import RemoteScores, Slot
from bmrm.mpi.share import Rank

END = "end"
"""Request after which the other ranks stop listening; it names no object."""
Target = str | Slot | Request


class Ranks:
    """The objects of all ranks, whose methods rank 0 has carried out on each of them.

    Parameters
    ----------
    rank : this one.
    kinds : of objects.
    guarding : what is held back of this rank's rows; None for nothing.
    """

    def __init__(self, rank: Rank, kinds: Mapping[str, Kind], guarding: Guarding | None = None) -> None:
        self.rank, self.share, self.group = rank, rank.share, rank.group
        self.local = LocalObjects(rank, kinds) if guarding is None else GuardedObjects(rank, guarding)
        self.refused: RefusedError | None = None
        """What a guarded rank has refused: no rank answers any more."""
        self._slots = 0
        self._forget: list[int] = []
        self._define: dict[int, Terms] = {}
        self._combined: list[dict[Slot, float]] = []
        self.broken = False
        """Rank 0 failed in the middle of a request: the others cannot be spoken to any more."""
        self._within: tuple[Ranks, Slot] | None = None

    def put(self, name: str, found: Any) -> None:
        """Have this rank answer requests for `name`, which `bmrm.mpi.kinds` lists, by this object."""
        self.local.put(name, found)

    # -- rank 0 ----------------------------------------------------------------------------------

    def asked_within(self, ranks: Ranks, slot: Slot) -> None:
        """From now on these are rows that `ranks` keep under `slot`, and are asked through them."""
        self._within = ranks, slot

    @property
    def _path(self) -> tuple[int, ...]:
        return () if self._within is None else (*self._within[0]._path, self._within[1].number)

    @property
    def _all(self) -> Ranks:
        return self if self._within is None else self._within[0]._all

    def ask(self, target: Target, method: str, *arguments: Any, answer: Answer | tuple[Answer, ...] = ()) -> Any:
        """Have all ranks, this one too, call a method; for each of `answer` what it says: see `Answer`.

        What is kept comes back as `RemoteScores`; the target may be a request of `making`.
        """
        everywhere = self._all
        if everywhere.refused is not None:
            raise everywhere.refused
        answers: list[Answer | Kept] = [answer] if isinstance(answer, Answer) else [*answer]
        slots = []
        for k, each in enumerate(answers):
            if each is Answer.KEEP:
                slot = self.slot()
                slots.append((k, slot))
                answers[k] = Kept(slot.number)
        numbered = tuple([self._plain(argument) for argument in arguments])
        define, self._define = self._define, {}
        forget = tuple(self._forget)
        del self._forget[: len(forget)]
        request = Request(
            target.number if isinstance(target, Slot) else target,
            method,
            numbered,
            tuple(answers),
            define,
            forget,
            self._path,
        )
        keeps = self.local.kind_made(request)
        message = encode(request)
        everywhere.broken = True
        send(self.group, message)
        try:
            outcomes = self.local.answer(request, keeps)
        except RefusedError as error:
            everywhere.broken, everywhere.refused = False, error
            raise
        everywhere.broken = False
        self._combined.clear()
        for k, slot in slots:
            outcomes[k] = RemoteScores({slot: 1.0})
        return outcomes[0] if isinstance(answer, Answer) else outcomes

    def number(self, target: Target, method: str, *arguments: Any) -> float:
        """The sum of the numbers that a method returns."""
        return cast(float, self.ask(target, method, *arguments, answer=Answer.SUM))

    def array(self, target: Target, method: str, *arguments: Any, answer: Answer = Answer.SUM) -> NDArray[np.float64]:
        """The sum of the arrays that a method returns, or what else `answer` makes of them."""
        return cast("NDArray[np.float64]", self.ask(target, method, *arguments, answer=answer))

    def scores(self, target: Target, method: str, *arguments: Any) -> RemoteScores:
        """The scores that a method returns, kept by the ranks."""
        return cast(RemoteScores, self.ask(target, method, *arguments, answer=Answer.KEEP))

    def object(self, target: Target, method: str, *arguments: Any) -> Slot:
        """The object that a method returns, kept by the ranks."""
        return cast(Slot, self.scores(target, method, *arguments).single())

    def making(self, slot: Slot, target: Target, method: str, *arguments: Any) -> Request:
        """The same under `slot`, as the target of the next request."""
        object = target.number if isinstance(target, Slot) else target
        return Request(object, method, tuple([self._plain(argument) for argument in arguments]), (Kept(slot.number),))

    def slot(self) -> Slot:
        """A fresh number."""
        self._slots += 1
        return Slot(self._slots, self)

    def forget(self, number: int) -> None:
        """As of `Keeper`: with the next request."""
        self._forget.append(number)

    def form(self, scores: RemoteScores) -> None:
        """As of `Keeper`: at the start of the next request."""
        if len(scores.terms) > 1:
            self._number(scores)

    def _plain(self, argument: Any) -> Any:
        if isinstance(argument, RemoteScores):
            return Kept(self._number(argument))
        if isinstance(argument, np.ndarray):
            return plain_array(argument)
        return Kept(argument.number) if isinstance(argument, Slot) else argument

    def _number(self, scores: RemoteScores) -> int:
        """The number of `scores`; a combination is formed by the ranks at the start of the next request."""
        slot = scores.single()
        if slot is None:
            slot = self.slot()
            self._define[slot.number] = tuple((term.number, factor) for term, factor in scores.terms.items())
            # what is combined must not be forgotten before
            self._combined.append(scores.terms)
            scores.terms = {slot: 1.0}
        return slot.number

    def end(self, well: bool) -> None:
        """Let the other ranks leave `serve`."""
        send(self.group, encode(Request(END, END, (well,))))

    # -- the other ranks -------------------------------------------------------------------------

    def serve(self) -> bool:
        """Answer requests until rank 0 ends; True if it ended well."""
        while (request := receive(self.group)).target != END:
            local = self.local.of(request.within)
            local.answer(request, local.kind_made(request))
        return bool(request.arguments[0])
