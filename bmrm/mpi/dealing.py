"""Rows that change ranks: dealt out by chance, or gathered on rank 0. Groups of rows stay whole.

Dual steps over ranks want rows that are alike on all ranks; files are often sorted, by class or by region.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.joining import join_rows, packed, unpacked
from bmrm.data.matrix import features_of
from bmrm.mpi.group import Group, together
from bmrm.problem import Targets

ORIGIN = "the rows of all ranks"


def resident(data: Dataset, group: Group) -> bool:
    """Collective: whether the rows of all ranks are in memory; those that are larger stay where they are."""
    return not group.max(np.array([float(not features_of(data.X).resident)]))[0]


def deal_out(data: Dataset, group: Group, seed: int) -> Dataset:
    """Collective: of each rank's rows about as many for every rank, drawn by chance; the same for the same `seed`."""
    if group.size == 1:
        return data
    with together(group):
        places = _places(data, group, seed)
        pieces = [packed(data.select(np.flatnonzero(places == rank))) for rank in range(group.size)]
    received = group.exchange(pieces)
    del pieces
    with together(group):
        found = join_rows([unpacked(piece) for piece in received], ORIGIN)
    return replace(found, layout=data.layout, labelled=data.labelled)


def gather_rows(data: Dataset, group: Group) -> Dataset | None:
    """Collective: these rows of all ranks in rank order, on rank 0; None elsewhere."""
    if group.size == 1:
        return data
    pieces = group.gather_bytes(packed(data))
    if pieces is None:
        return None
    return replace(join_rows([unpacked(piece) for piece in pieces], ORIGIN), layout=data.layout)


def gather_targets(targets: Targets, group: Group) -> Targets | None:
    """Collective: those of the rows of all ranks in rank order, on rank 0; None elsewhere."""
    found = None
    with together(group):
        found = gather_rows(Dataset(np.empty((targets.rows, 0)), targets), group)
    return None if found is None else found.targets


def _places(data: Dataset, group: Group, seed: int) -> NDArray[np.int64]:
    """The rank that each row goes to."""
    groups = data.targets.groups
    if groups is None:
        of_row, count = np.arange(data.rows), data.rows
    else:  # runs of equal numbers
        starts = np.concatenate(([True], groups[1:] != groups[:-1]))[: data.rows]
        of_row = np.cumsum(starts) - 1
        count = int(of_row[-1]) + 1 if data.rows else 0
    hands = (np.arange(count) + group.rank) % group.size  # rank 0 does not get the odd one of every rank
    shuffled: NDArray[np.int64] = np.random.default_rng([seed, group.rank]).permutation(hands)[of_row]
    return shuffled
