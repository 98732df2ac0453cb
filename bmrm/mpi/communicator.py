"""A group of MPI ranks: buffers only, counts above 2^31 safe, and waiting that leaves the cores to those who compute.

MPI libraries wait by spinning. That is right for the moment that an answer usually takes while every rank has a core;
beyond that, and where there are more ranks than cores, a waiting rank polls and sleeps.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import mpi4py
import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.compiling import COMPILING
from bmrm.kernels.workers import usable_core_numbers
from bmrm.mpi.cores import fair_share, mask_of, threads_for
from bmrm.mpi.group import Group, from_bytes, to_bytes
from bmrm.mpi.masks import Masks
from bmrm.mpi.pulse import Pulse
from bmrm.mpi.sentinel import Sentinel
from bmrm.problem.abilities import Sent

if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.thread_level = "funneled"  # only the main thread talks to MPI
from mpi4py import MPI

PIECE = 1 << 20
"""Numbers in a message; longer arrays are sent in pieces, so that no count approaches 2^31."""

FORWARDING = 0.5
"""Seconds for the launcher to forward what was printed, before all ranks are ended."""
GRACE = 10.0
"""Seconds that the launcher then has to end them."""
TIMEOUT, LOOK = 600.0, 0.25
"""Default of seconds without a heartbeat of a rank after which the job ends, and seconds between two checks while
waiting."""
LATE, LONGEST_NAP = 0.01, 0.05
"""Longest sleep of a waiting rank, as a share of the time that it has waited, and in seconds."""
SHORT = 1 << 13
"""Most numbers of an array that rank 0 exchanges with each rank directly where ranks outnumber cores."""


def started() -> int:
    """How many ranks MPI has started."""
    size: int = MPI.COMM_WORLD.Get_size()
    return size


class MpiGroup(Group):
    """A `Group` over an MPI communicator (a duplicate of it, so that the caller's messages cannot mix with ours)."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm.Dup()
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        share = self._share_of_cores()
        self.crowded: bool = self._most(share < 1.0)
        """Whether ranks outnumber cores, on some node."""
        self.cores_per_rank: int | None = threads_for(share)
        self.waited = 0.0
        """Seconds spent waiting for other ranks."""
        self.busy = 0.0
        """Seconds that this rank has computed for rank 0."""
        self._ahead = self._waited_before = 0.0
        self._messages = self._bytes = 0
        self._kept = np.empty(0)
        self.timeout: float | None = TIMEOUT
        """Seconds without a sign of life of a rank after which the job ends; None for never."""
        self.masks: Masks | None = None
        """By which rank 0 learns sums over the other ranks only; None for none."""
        self.sentinel: Sentinel | None = None
        """Who says that a rank was killed."""
        self._pulse: Pulse | None = None
        self._pulse = self._started_pulse()

    @classmethod
    def world(cls) -> MpiGroup:
        """All ranks that the launcher started."""
        return cls(MPI.COMM_WORLD)

    def _share_of_cores(self) -> float:
        """Collective: see `bmrm.mpi.cores`."""
        cores = usable_core_numbers()
        width = np.array([max(cores) + 1])
        self.node.Allreduce(MPI.IN_PLACE, width, op=MPI.MAX)
        mine = mask_of(cores, int(width[0]))
        on_node = np.empty_like(mine)
        self.node.Allreduce(mine, on_node, op=MPI.SUM)
        return fair_share(mine, on_node)

    def _most(self, mine: bool) -> bool:
        """Collective: whether it is so on any rank; all must agree on how they speak to one another."""
        found = np.array([float(mine)])
        self.comm.Allreduce(MPI.IN_PLACE, found, op=MPI.MAX)
        return bool(found[0])

    # -- waiting ---------------------------------------------------------------------------------

    def wait(self, *requests: MPI.Request) -> None:
        """Until all requests are complete: poll for a while, then sleep between bursts of polls.

        A burst has a poll for each rank, because one poll may look at the mailbox of one other rank only.
        """
        pending = list(requests)
        if MPI.Request.Testall(pending):
            return
        begin = now = time.perf_counter()
        burst = 4 + self.size
        patience, longest_nap = (0.0, 4e-3) if self.crowded else (2e-3, 2e-4)
        nap, look = 2e-5, begin + LOOK
        while not any(MPI.Request.Testall(pending) for _ in range(burst)):
            if now - begin < patience:
                os.sched_yield()
            else:
                time.sleep(nap)
                nap = min(2.0 * nap, max(longest_nap, min(LATE * (now - begin), LONGEST_NAP)))
            now = time.perf_counter()
            if now >= look:
                look = now + LOOK
                self._end_if_silent()
        self.waited += time.perf_counter() - begin

    def _started_pulse(self) -> Pulse | None:
        """Collective: the signs of life; None where there is nobody else."""
        if self.size == 1:
            return None
        pulse = Pulse(self.rank, self.size)
        mine = pulse.introduction()
        everyone, first = self.gather(mine), self.broadcast(mine)
        pulse.start({0: first} if everyone is None else dict(enumerate(everyone[1:], 1)))
        return pulse

    def _end_if_silent(self) -> None:
        """End all ranks where one that this one watches has given no sign of life for too long."""
        if self._pulse is None or self.timeout is None:
            return
        # If rank 0 is silent all others see it: the first of them that lives says so.
        late = (LOOK + FORWARDING) * max(0, self.rank - 1)
        silent = self._pulse.silent(self.timeout + late)
        if silent:
            verb = "has" if len(silent) == 1 else "have"
            names = ", ".join(silent)
            limit = f"{self.timeout:g} s (mpi.timeout)"
            print(f"bmrm: {names} {verb} not answered for {limit}: the job ends", file=sys.stderr)
            self.abort(1)

    def so_far(self) -> Sent:
        """As of `Traffic`."""
        return Sent(self.waited, self._ahead, self._messages, self._bytes)

    def compare(self, mine: float, everybody: float, compiled: float) -> None:
        """On rank 0: how long this rank and all together have computed since the last time, before the last wait.

        `compiled` is what the others have spent on compiling besides: what this rank has waited for that is no waiting.
        """
        others = (everybody - mine) / (self.size - 1) if self.size > 1 else 0.0
        compiled = min(compiled, self.waited - self._waited_before)
        COMPILING.wait(compiled)
        self.waited -= compiled
        self._ahead += min(max(0.0, others - mine), self.waited - self._waited_before)
        self._waited_before = self.waited

    def _count(self, array: NDArray[Any]) -> None:
        self._messages += 1
        self._bytes += array.nbytes

    def barrier(self) -> None:
        """Wait for every rank."""
        self.wait(self.comm.Ibarrier())

    def first_per_node(self, function: Callable[[], object]) -> None:
        """As of `Group`."""
        if self.node.Get_rank() == 0:
            function()
        self.wait(self.node.Ibarrier())

    # -- buffers ---------------------------------------------------------------------------------

    def send_out(self, buffer: NDArray[Any]) -> None:
        """Overwrite a contiguous `buffer` with that of rank 0."""
        flat = buffer.reshape(-1)
        self._count(flat)
        if not self._directly(flat):
            self.wait(*(self.comm.Ibcast(piece, root=0) for piece in _pieces(flat)))
        elif self.rank == 0:
            self.wait(*(self.comm.Isend(flat, dest=rank, tag=4) for rank in range(1, self.size)))
        else:
            self.wait(self.comm.Irecv(flat, source=0, tag=4))

    def _directly(self, flat: NDArray[Any]) -> bool:
        """Whether rank 0 speaks to each rank itself: in a tree every level waits for a sleeper to wake."""
        return self.crowded and flat.size <= SHORT

    def start_adding(self, part: NDArray[Any], total: NDArray[Any] | None) -> list[MPI.Request]:
        """Begin to add `part` over all ranks into `total` of rank 0; both must live until the requests complete.

        Without masks.
        """
        requests = []
        self._count(part)
        for start in range(0, part.size, PIECE):
            piece = slice(start, start + PIECE)
            into = total[piece] if total is not None else None
            requests.append(self.comm.Ireduce(part[piece], into, op=MPI.SUM, root=0))
        return requests

    def add_up(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of `part` (one-dimensional) over ranks, on rank 0; `part` itself elsewhere."""
        if self.masks is None:
            return self._added_up(part)
        words = self._added_up(self.masks.masked(part))
        return self.masks.total(words) if self.rank == 0 else part

    def _added_up(self, part: NDArray[Any]) -> NDArray[Any]:
        """The same, of numbers as they are."""
        if self._directly(part):
            return self._add_up_directly(part)
        total: NDArray[Any] | None = np.empty_like(part) if self.rank == 0 else None
        self.wait(*self.start_adding(part, total))
        return part if total is None else total

    def _add_up_directly(self, part: NDArray[Any]) -> NDArray[Any]:
        self._count(part)
        if self.rank != 0:
            self.wait(self.comm.Isend(part, dest=0, tag=5))
            return part
        parts = np.empty((self.size, part.size), part.dtype)
        parts[0] = part
        self.wait(*(self.comm.Irecv(parts[rank], source=rank, tag=5) for rank in range(1, self.size)))
        return np.asarray(parts.sum(axis=0))

    def join_slices(self, mine: NDArray[np.float64], sizes: Sequence[int]) -> NDArray[np.float64]:
        """The slices of all ranks, one after another, on each of them; an all-gather.

        Parameters
        ----------
        mine : of this rank.
        sizes : of the slices of all ranks.
        """
        whole = np.empty(sum(sizes))
        self._count(whole)
        counts, starts = list(sizes), [0, *np.cumsum(sizes[:-1]).tolist()]
        self.wait(self.comm.Iallgatherv(np.ascontiguousarray(mine), [whole, (counts, starts)]))
        return whole

    def sum_in_slices(self, part: NDArray[np.float64], sizes: Sequence[int]) -> NDArray[np.float64]:
        """This rank's slice of the sum of all parts: a reduce-scatter.

        Parameters
        ----------
        part : of this rank, as long as all slices together.
        sizes : of the slices of all ranks.
        """
        total = np.empty(sizes[self.rank])
        self._count(part)
        self.wait(self.comm.Ireduce_scatter(np.ascontiguousarray(part), total, list(sizes), op=MPI.SUM))
        return total

    # -- Group -----------------------------------------------------------------------------------

    def broadcast(self, value: Any) -> Any:
        """As of `Group`."""
        text = np.frombuffer(to_bytes(value), dtype=np.uint8) if self.rank == 0 else None
        return from_bytes(self._broadcast_any(text, np.uint8).tobytes())

    def gather(self, value: Any) -> list[Any] | None:
        """As of `Group`."""
        text = np.frombuffer(to_bytes(value), dtype=np.uint8)
        parts = self._gather_parts(text)
        return None if parts is None else [from_bytes(part.tobytes()) for part in parts]

    def broadcast_array(self, array: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """As of `Group`."""
        shape = self.broadcast(None if array is None else list(array.shape))
        flat = None if array is None else np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
        received: NDArray[np.float64] = self._broadcast_any(flat, np.float64).reshape(shape)
        return received

    def gather_array(self, array: NDArray[Any]) -> NDArray[Any] | None:
        """As of `Group`."""
        tail = array.shape[1:]
        parts = self._gather_parts(np.ascontiguousarray(array).reshape(-1))
        return None if parts is None else np.concatenate(parts).reshape((-1, *tail))

    def gather_bytes(self, content: NDArray[np.uint8]) -> list[NDArray[np.uint8]] | None:
        """As of `Group`."""
        return self._gather_parts(content)

    def exchange(self, pieces: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        """As of `Group`."""
        sizes = np.array([piece.size for piece in pieces], np.int64)
        expected = np.empty_like(sizes)
        self.wait(self.comm.Ialltoall(sizes, expected))
        found = [np.empty(int(size), np.uint8) for size in expected]
        found[self.rank] = pieces[self.rank]
        for part in (*pieces, *found):
            self._bytes += 0 if part is pieces[self.rank] else part.nbytes
        self._messages += 1
        others = [rank for rank in range(self.size) if rank != self.rank]
        requests = [self.comm.Irecv(part, source=rank, tag=6) for rank in others for part in _pieces(found[rank])]
        requests += [self.comm.Isend(part, dest=rank, tag=6) for rank in others for part in _pieces(pieces[rank])]
        self.wait(*requests)
        return found

    def sum(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """As of `Group`."""
        total = np.array(array, dtype=np.float64).reshape(-1)
        self.sum_in_place(total)
        return total.reshape(np.shape(array))

    def sum_in_place(self, numbers: NDArray[np.float64]) -> None:
        """The same of a one-dimensional array, which becomes the sum.

        Two ranks exchange what they have and both add it up, so that all ranks have the same bits; some MPI sum in
        another order on each. Where ranks share cores, or wear masks, rank 0 adds up and sends out.
        """
        if not self.in_pairs:
            numbers[:] = self.add_up(numbers)
            self.send_out(numbers)
            return
        self._count(numbers)
        for piece in _pieces(numbers):
            self._exchange_sums(piece)

    def _exchange_sums(self, numbers: NDArray[np.float64]) -> None:
        """In pairs, then in pairs of pairs; a rank beyond the last power of two leaves its part to a partner."""
        pairs = 1 << (self.size.bit_length() - 1)
        partner, theirs = self.rank ^ pairs, self._room(numbers.size)
        if self.rank >= pairs:
            self.wait(self.comm.Isend(numbers, dest=partner, tag=8))
            self.wait(self.comm.Irecv(numbers, source=partner, tag=8))
            return
        if partner < self.size:
            self.wait(self.comm.Irecv(theirs, source=partner, tag=8))
            numbers += theirs
        step = 1
        while step < pairs:
            other = self.rank ^ step
            self.wait(self.comm.Irecv(theirs, source=other, tag=8), self.comm.Isend(numbers, dest=other, tag=8))
            numbers += theirs
            step *= 2
        if partner < self.size:
            self.wait(self.comm.Isend(numbers, dest=partner, tag=8))

    @property
    def in_pairs(self) -> bool:
        """Whether ranks speak to one another themselves, and show one another what they send."""
        return self.masks is None and not self.crowded

    def trade(self, messages: NDArray[np.float64], size: int) -> None:
        """Fill in the rows of all other ranks; this one has written the first `size` numbers of its own.

        Ranks may send more or fewer numbers than others. For groups that speak `in_pairs`.
        """
        mine = messages[self.rank, :size]
        self._count(mine)
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        requests = [self.comm.Irecv(messages[rank], source=rank, tag=9) for rank in reversed(others)]
        requests += [self.comm.Isend(mine, dest=rank, tag=9) for rank in others]
        self.wait(*requests)

    def _room(self, size: int) -> NDArray[np.float64]:
        """For what another rank sends; kept, since pages of new memory take longer to get than the message."""
        if self._kept.size < size:
            self._kept = np.empty(size)
        return self._kept[:size]

    def max(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """As of `Group`."""
        part = np.array(array, dtype=np.float64)
        most = np.empty_like(part)
        self.wait(self.comm.Iallreduce(part, most, op=MPI.MAX))
        return most

    def abort(self, status: int) -> None:
        """As of `Group`."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.sentinel is not None:
            self.sentinel.end(well=False)
        time.sleep(FORWARDING)
        MPI.COMM_WORLD.Abort(status)
        time.sleep(GRACE)  # it may return before the launcher has ended the ranks; nothing more is to be said or done
        os._exit(status)

    # -- pieces ----------------------------------------------------------------------------------

    def _broadcast_any(self, flat: NDArray[Any] | None, dtype: Any) -> NDArray[Any]:
        length = np.array([0 if flat is None else flat.size], dtype=np.int64)
        self.send_out(length)
        buffer = flat.copy() if flat is not None else np.empty(int(length[0]), dtype=dtype)
        self.send_out(buffer)
        return buffer

    def _gather_parts(self, flat: NDArray[Any]) -> list[NDArray[Any]] | None:
        sizes = np.zeros(self.size, dtype=np.int64)
        self._count(flat)
        self.wait(self.comm.Igather(np.array([flat.size], dtype=np.int64), sizes if self.rank == 0 else None, root=0))
        if self.rank != 0:
            self.wait(*(self.comm.Isend(piece, dest=0, tag=1) for piece in _pieces(flat)))
            return None
        parts = [flat] + [np.empty(int(size), dtype=flat.dtype) for size in sizes[1:]]
        requests = [
            self.comm.Irecv(piece, source=rank, tag=1) for rank in range(1, self.size) for piece in _pieces(parts[rank])
        ]
        self.wait(*requests)
        return parts

    def hand_out(self, whole: NDArray[np.float64] | None, rows: int) -> NDArray[np.float64]:
        """The inverse of `gather_array`: each rank gets its `rows` rows of the array of rank 0."""
        counts = self.gather(rows)
        if whole is None:
            shape = (rows, *self.broadcast(None))
            part: NDArray[np.float64] = np.empty(shape)
            self.wait(*(self.comm.Irecv(piece, source=0, tag=3) for piece in _pieces(part.reshape(-1))))
            return part
        self.broadcast(list(whole.shape[1:]))
        self._count(whole)
        assert counts is not None
        ends = np.cumsum(counts)
        requests = [
            self.comm.Isend(piece, dest=rank, tag=3)
            for rank in range(1, self.size)
            for piece in _pieces(np.ascontiguousarray(whole[ends[rank - 1] : ends[rank]]).reshape(-1))
        ]
        self.wait(*requests)
        mine: NDArray[np.float64] = whole[:rows].copy()
        return mine


def _pieces(flat: NDArray[Any]) -> list[NDArray[Any]]:
    return [flat[start : start + PIECE] for start in range(0, flat.size, PIECE)]
