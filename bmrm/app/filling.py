"""Rows that come in parts, into a store; what columns of text become is decided by all rows, which come twice then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bmrm.data.encoding import Encoding, merged
from bmrm.data.files import about
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.raw import Raw
from bmrm.data.store import StoreWriter
from bmrm.mpi.group import Group, together


def fill(store: StoreWriter, parts: Iterable[Raw], coding: Coding, group: Group, origin: str) -> Encoding | None:
    """Collective: write the rows of this rank, whose memory is needed for a part, and for labels.

    Parameters
    ----------
    store : empty.
    parts : of this rank; begun anew by each `iter`.
    coding : what is wanted of columns that are to become features.
    group : the ranks, which must agree on what these become.
    origin : of the rows, for messages.

    Returns
    -------
    Encoding
        What columns have become; None where they were features.
    """
    plain = True
    with together(group):
        for raw in parts:
            if raw.table is not None:
                plain = False
                break
            _add(store, raw)
    if group.max(np.array([float(not plain)]))[0] == 0.0:
        return None
    store.restart()
    encoding = _agreed(parts, coding, group, origin)
    with together(group):
        for raw in parts:
            if raw.data.rows:
                _add(store, raw.encoded(encoding))
    return encoding


def _add(store: StoreWriter, raw: Raw) -> None:
    if raw.names is not None:  # of text that is all there: features are counted
        raw = Raw(raw.dataset(), raw.origin)
    if raw.data.rows:
        with about(raw.origin):
            store.add(raw.data, raw.extent, raw.first)


def _agreed(parts: Iterable[Raw], coding: Coding, group: Group, origin: str) -> Encoding:
    """Collective: the encoding of columns by their summaries in all parts of all ranks."""
    mine: Any = None
    with together(group):
        for raw in parts:
            if raw.data.rows:
                table = raw.columns()
                mine = [list(table.names), table.headed, []] if mine is None else mine
                mine[2].append(raw.aligned(mine[0]).summaries())
    told = [one for one in group.gather(mine) or [] if one is not None]
    agreed: Any = None
    with together(group):
        if group.rank == 0:
            names, headed, _ = told[0]
            agreed = [names, headed, merged([one for each in told for one in each[2]], names, origin)]
    names, headed, found = group.broadcast(agreed)
    return Encoding.fitted(found, names, headed, coding, origin)
