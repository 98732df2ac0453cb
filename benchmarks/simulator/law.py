"""T(n) = a + b/n + c log2 n + e d/B, fitted part by part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Parts:
    """What was measured of a run.

    Attributes
    ----------
    ranks : how many.
    serial : seconds of rank 0 that do not become fewer with more ranks.
    shared : seconds in which all ranks compute, each with its rows.
    network : seconds in messages.
    messages, bytes : sent.
    """

    ranks: int
    serial: float
    shared: float
    network: float = 0.0
    messages: float = 0.0
    bytes: float = 0.0

    @property
    def levels(self) -> float:
        """Messages, each times the levels of its tree."""
        return self.messages * math.log2(self.ranks)


@dataclass(frozen=True)
class Network:
    """Seconds of a message between two ranks, and of a byte."""

    latency: float
    byte: float


@dataclass(frozen=True)
class Law:
    """T(n) = a + b/n + c log2 n + d for n > 1; a + b for n = 1.

    Attributes
    ----------
    a : what rank 0 does alone.
    b : what ranks share.
    c : latency of all messages.
    d : bytes of all messages over the bandwidth (e d/B of the issue of the page).
    """

    a: float
    b: float
    c: float
    d: float

    def seconds(self, ranks: float) -> float:
        """T(n)."""
        return self.a + self.b / ranks + (self.c * math.log2(ranks) + self.d if ranks > 1 else 0.0)


def network(runs: Sequence[Parts]) -> Network:
    """Latency and seconds of a byte, neither below 0, by least squares on the seconds in messages."""
    from scipy.optimize import nnls

    several = [run for run in runs if run.ranks > 1]
    columns = np.array([(run.levels, run.bytes) for run in several], float).reshape(-1, 2)
    sizes = np.maximum(columns.max(axis=0, initial=0.0), 1.0)
    found, _ = nnls(columns / sizes, np.array([run.network for run in several]))
    latency, byte = found / sizes
    return Network(float(latency), float(byte))


def law(runs: Sequence[Parts], found: Network) -> Law:
    """Of runs of one problem on several numbers of ranks: the means of what each part would be for n = 1."""
    several = [run for run in runs if run.ranks > 1]
    messages = float(np.mean([run.messages for run in several])) if several else 0.0
    sent = float(np.mean([run.bytes for run in several])) if several else 0.0
    a = float(np.mean([run.serial for run in runs]))
    b = float(np.mean([run.shared * run.ranks for run in runs]))
    return Law(a, b, messages * found.latency, sent * found.byte)
