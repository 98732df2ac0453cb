"""Time by part, memory of ranks, and what binds: a recorded run, replayed on a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.memory import FORMULAS, WHOLE, Sizes
from benchmarks.simulator.clusters import Cluster
from benchmarks.simulator.recording import Recording, Shape, Step
from bmrm.problem import InputError

REQUEST = 512
"""Bytes of a short message, those of a request."""
PIECE = 1 << 20
"""Numbers of a message: longer vectors are sent in pieces, as `bmrm.mpi.communicator` does it."""
PASSES, UNEVEN, LOSS, MASTER, VECTORS = "passes", "uneven ranks", "loss, requests", "master", "vectors"
LATENCY, BANDWIDTH = "latency", "bandwidth"
PARTS = (PASSES, UNEVEN, LOSS, MASTER, VECTORS, LATENCY, BANDWIDTH)
ROWS_MEMORY, RANK_0_MEMORY = "memory (rows)", "memory (rank 0)"


@dataclass(frozen=True)
class Prediction:
    """Of a job on so many ranks.

    Attributes
    ----------
    seconds : by part.
    rank_0, others : bytes of rank 0, and of another rank, the most loaded one.
    nodes : bytes of the node of rank 0, and of another node.
    limit : bytes of a node.
    """

    ranks: int
    seconds: Mapping[str, float]
    rank_0: float
    others: float
    nodes: tuple[float, float]
    limit: float

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.seconds.values())

    @property
    def fits(self) -> bool:
        """Into the memory of the nodes."""
        return max(self.nodes) <= self.limit

    @property
    def slowest(self) -> str:
        """The part that takes longest."""
        return max(self.seconds, key=lambda part: self.seconds[part])

    @property
    def binds(self) -> str:
        """Memory where that is too little, else the part that takes longest."""
        if self.fits:
            return self.slowest
        return ROWS_MEMORY if self.nodes[1] > self.limit else RANK_0_MEMORY


def predict(
    recording: Recording,
    cluster: Cluster,
    ranks: int,
    *,
    shape: Shape | None = None,
    threads: int = 1,
    slices: bool = False,
) -> Prediction:
    """What a recorded run would take on so many ranks, spread evenly over the nodes.

    Parameters
    ----------
    recording : the run.
    cluster : where it is replayed.
    ranks : how many.
    shape : of a larger problem that takes as many iterations, with as many planes; None for that of the recording.
    threads : of each rank.
    slices : whether ranks hold slices of planes and of the solver's vectors, in place of rank 0 all of them.

    Raises
    ------
    InputError
        A node has fewer cores than its ranks have threads.
    """
    on_node = -(-ranks // cluster.nodes)
    if on_node * threads > cluster.cores:
        raise InputError(f"{on_node} ranks of {threads} threads on a node of {cluster.cores} cores, expected as many")
    replay = _Replay(recording, cluster, ranks, shape or recording.shape, threads, slices)
    seconds = dict.fromkeys(PARTS, 0.0)
    for step in recording.steps:
        for part, took in replay.parts(step).items():
            seconds[part] += took
    rank_0, others = replay.memory()
    nodes = rank_0 + (on_node - 1) * others, on_node * others if ranks > on_node else 0.0
    return Prediction(ranks, seconds, rank_0, others, nodes, cluster.memory)


@dataclass(frozen=True)
class _Replay:
    """See `predict`."""

    recording: Recording
    cluster: Cluster
    ranks: int
    shape: Shape
    threads: int
    slices: bool

    @property
    def speed(self) -> float:
        """Of a core, in those of the machine of the recording."""
        rate = self.cluster.entries_per_second
        return 1.0 if rate is None else rate / self.recording.rate

    @property
    def pace(self) -> float:
        """Of a rank in a pass, in the same unit: it has its threads, and shares the memory of the node."""
        busy = self.threads * -(-self.ranks // self.cluster.nodes)
        others = (busy - 1) / max(1, self.cluster.cores - 1)
        return self.threads * self.speed / (1.0 + (self.cluster.crowding - 1.0) * others)

    @property
    def sliced(self) -> float:
        """Into how many parts vectors and planes are cut."""
        return self.ranks if self.slices else 1

    def parts(self, step: Step) -> dict[str, float]:
        """Seconds of a step; one rank asks nobody, so that for a loss of rows nothing but the passes is left there."""
        recorded = self.recording.shape
        rows, entries, dim = (
            getattr(self.shape, name) / getattr(recorded, name) for name in ("rows", "entries", "dim")
        )
        fixed = min(step.shared, step.passes * self.recording.fixed)
        body = (step.shared - fixed) * entries / self.pace
        bare = self.recording.bare_master, self.recording.bare_rest
        latency, bandwidth = self._messages(step, rows)
        return {
            PASSES: fixed * dim / self.speed + body / self.ranks,
            UNEVEN: body * max(0.0, self.recording.largest_share(self.ranks) - 1.0 / self.ranks),
            LOSS: step.alone * (rows if self.recording.whole_sample else float(self.ranks > 1)) / self.speed,
            MASTER: self._grown(step.master, bare[0], dim),
            VECTORS: self._grown(step.rest, bare[1], dim),
            LATENCY: latency,
            BANDWIDTH: bandwidth,
        }

    def _grown(self, seconds: float, bare: float, dim: float) -> float:
        """Seconds of rank 0, all but `bare` of which grow with the features, and are shared where these are sliced."""
        bare = min(seconds, bare)
        return (bare + (seconds - bare) * dim / self.sliced) / self.speed

    def _messages(self, step: Step, rows: float) -> tuple[float, float]:
        """Seconds of latency, and of bytes under way."""
        short = collective(REQUEST, self.ranks, self.cluster)
        vector = collective(8.0 * self.shape.dim, self.ranks, self.cluster)
        gathered = 8.0 * step.gathered * rows * (1.0 - 1.0 / self.ranks) / self.cluster.bandwidth
        latency = step.short * short[0] + step.vectors * vector[0]
        return latency, step.short * short[1] + step.vectors * vector[1] + gathered

    def memory(self) -> tuple[float, float]:
        """Bytes of rank 0, and of the most loaded other rank."""
        shape, share = self.shape, self.recording.largest_share(self.ranks)
        rows = math.ceil(shape.rows * share)
        data = 12.0 * shape.entries * share + 24.0 * rows
        formula = FORMULAS[self.recording.solver].bytes
        own = formula(Sizes(rows=rows, dim=0, nnz=math.ceil(shape.entries * share), K=shape.scores))
        of_rank_0 = shape.rows if self.recording.whole_sample else rows
        planes, dim = self.recording.planes, -(-shape.dim // self.sliced)
        solver = formula(Sizes(rows=of_rank_0, dim=int(dim), nnz=shape.entries, planes=planes, K=shape.scores))
        answering = WHOLE + data + own + 16.0 * shape.dim
        if self.slices:
            answering += formula(Sizes(rows=0, dim=int(dim), nnz=0, planes=planes, K=shape.scores))
        return WHOLE + data + solver + (16.0 * shape.dim if self.slices else 0.0), answering


def collective(size: float, ranks: int, cluster: Cluster) -> tuple[float, float]:
    """Seconds of latency, and of bytes, that a broadcast or a sum of `size` bytes takes: the faster of two ways.

    Along a tree all bytes go through each of its levels; in the other way (scatter and gather for a broadcast) each
    rank sends its part of them twice, in twice as many messages one after another.
    """
    levels = math.ceil(math.log2(ranks))
    pieces = math.ceil(size / (8 * PIECE)) * cluster.latency
    tree = levels * pieces, levels * size / cluster.bandwidth
    split = 2.0 * levels * pieces, 2.0 * (1.0 - 1.0 / ranks) * size / cluster.bandwidth
    return min(tree, split, key=sum)


def overtaken(predictions: Sequence[Prediction]) -> Prediction | None:
    """The first of these, by increasing ranks, in which another part takes longer than the passes; None for none."""
    return next((each for each in predictions if each.slowest != PASSES), None)
