"""Clusters, described in `cases.yaml`, and the problems that are put on them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from pydantic import Field

from benchmarks.simulator.recording import Shape, Strict

CASES = Path(__file__).with_name("cases.yaml")


class Cluster(Strict):
    """Nodes that are alike, and the network between them.

    Attributes
    ----------
    nodes, cores : how many, and how many cores each of them has.
    latency : seconds of a message between two ranks, however short.
    bandwidth : bytes per second between two ranks.
    memory : bytes of a node.
    entries_per_second : of the data, that a pass on one core goes through; None for as many as where it was recorded.
    crowding : how many times as long a pass takes where all cores of a node compute, which share its memory.
    source : where the figures are from, and which are assumed.
    """

    nodes: int = Field(ge=1)
    cores: int = Field(ge=1)
    latency: float = Field(ge=0.0)
    bandwidth: float = Field(gt=0.0)
    memory: float = Field(gt=0.0)
    entries_per_second: float | None = Field(default=None, gt=0.0)
    crowding: float = Field(default=1.0, ge=1.0)
    source: str = ""


class Case(Strict):
    """A problem of the literature on a cluster.

    Attributes
    ----------
    title, about : for the page.
    recordings : names of those that are replayed.
    shape : of the problem; None for that of the recording.
    cluster : its name.
    ranks : numbers of them, one to a node.
    """

    title: str
    about: str
    recordings: tuple[str, ...]
    shape: Shape | None = None
    cluster: str
    ranks: tuple[int, ...]


class Described(Strict):
    """All of the file."""

    clusters: dict[str, Cluster]
    cases: dict[str, Case]


@cache
def described() -> Described:
    """Clusters and cases by name."""
    return Described.model_validate(yaml.safe_load(CASES.read_text()))
