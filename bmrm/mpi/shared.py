"""A dataset and a loss as one risk over all ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.sample import sample_loss, sample_risk
from bmrm.data.dataset import Dataset
from bmrm.kernels.workers import Workers
from bmrm.losses._core.over_ranks import SortsOverRanks
from bmrm.mpi.dealing import gather_targets, resident
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import (
    IncompatibleError,
    InputError,
    Loss,
    Risk,
    ScoreFunction,
    Space,
    Summary,
    Targets,
    facts_of,
    provides,
)
from bmrm.problem.results import is_own
from bmrm.risk.identity import identity
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.problem_size import problem_size
from bmrm.risk.products import Columns
from bmrm.risk.score_function import BoundLoss, LossPhi, in_mean_unit
from bmrm.risk.structured import StructuredRisk

if TYPE_CHECKING:
    from bmrm.mpi.communicator import MpiGroup
    from bmrm.mpi.guard import Guarding
    from bmrm.mpi.share import Share

GATHERED = 2_000_000
"""Rows of all ranks up to which a whole-sample loss gathers their scores on rank 0: 200 MB of its memory, 100 bytes a
row with targets and sorted copies. With so many rows two ranks that sort take no longer than rank 0 alone."""


def merged_summary(targets: Targets, loss: Loss, group: Group) -> Summary:
    """Collective: what `loss` must know of the targets of all ranks; InputError where all of these weigh 0."""
    with together(group):
        mine = loss.summarise(targets)
    own = targets.weights
    most = 1.0 if own is None else np.asarray(own, np.float64).max(initial=0.0)
    rows, heaviest = group.max(np.array([targets.rows, most], np.float64))
    with together(group):
        if rows and heaviest == 0.0:
            raise InputError("weights are all zero, expected at least one above 0")
    if group.size == 1:
        return mine if is_own(loss) else _summary(vars(mine))
    parts = group.gather(dataclasses.asdict(mine))
    merged = None
    with together(group):
        if parts is not None:
            first, *rest = (_summary(part) for part in parts)
            for part in rest:
                first = first.merge(part)
            merged = dataclasses.asdict(first)
    return _summary(group.broadcast(merged))


def _summary(part: Mapping[str, object]) -> Summary:
    return Summary(**{key: tuple(value) if isinstance(value, list) else value for key, value in part.items()})  # type: ignore[arg-type]


def shared_risk(
    data: Dataset,
    loss: Loss,
    group: Group,
    *,
    summary: Summary | None = None,
    bias: bool = False,
    columns: Columns | None = None,
    threads: int | None = None,
    share_rows: bool = False,
    guarding: Guarding | None = None,
    gathered: int = GATHERED,
) -> Risk:
    """Collective: the risk of `loss` over the rows of all ranks; to be used inside `bmrm.mpi.leading.lead`.

    Alone it is a `LinearRisk`. A rank may have no rows.

    Parameters
    ----------
    data : the rows of this rank; the number of features must be the same on all.
    loss : one that decomposes over rows is evaluated where the rows are; else rank 0 gathers scores, not data, or the
        ranks sort them together.
    group : the ranks.
    summary : of all rows (`merged_summary`), possibly with the labels in another order.
    bias : whether a constant feature 1 follows the features.
    columns : scale and shift of the features, applied to weights and gradients instead of the data.
    threads : per rank; None for the cores that the rank does not share.
    share_rows : whether all rows may go to rank 0, where that is faster; rows that are larger than memory stay.
    guarding : what ranks hold back of their rows, for a loss that decomposes; None for nothing.
    gathered : rows of all ranks above which a loss that can do without does not gather scores (`SortsOverRanks`).
    """
    if summary is None:
        summary = merged_summary(data.targets, loss, group)
    options: dict[str, Any] = {"bias": bias, "columns": columns}

    def risk_of(rows: Dataset) -> Risk:
        """While the other ranks wait, their cores are free."""
        return LinearRisk(rows, loss, summary=summary, threads=threads, **options)

    if isinstance(group, Alone):
        alone = risk_of(data)
        sample_loss(loss, data.targets, summary)
        return alone
    from bmrm.mpi.multiplexed import MultiplexedRisk

    if guarding is not None and loss.decomposes == "no":
        raise IncompatibleError(f"{facts_of(loss).title}: a guard needs a loss that is a sum over rows or groups")
    mpi: MpiGroup = group  # type: ignore[assignment]
    share_rows = share_rows and resident(data, mpi)
    each = mpi.cores_per_rank if threads is None else threads
    by_sorting = summary.rows > gathered and provides(loss, SortsOverRanks)
    make = _by_rows if loss.decomposes != "no" else _sorted_sample if by_sorting else _whole_sample
    share, whole = make(data, loss, mpi, summary, each, options)

    def sampled(rows: NDArray[np.int64]) -> Risk:
        return shared_risk(data.select(rows), loss, group, summary=summary, threads=threads, **options)

    may_sample = sampled if loss.decomposes == "rows" and guarding is None else None
    share = replace(share, data=data if share_rows else None, sampled=may_sample)
    may_go = risk_of if share_rows else None
    return MultiplexedRisk(share, mpi, whole=whole, risk_of=may_go, guarding=guarding)


def shared_terms(term: Callable[[float], Risk], mass: float, group: Group) -> Risk:
    """Collective: R(w) = sum over ranks of each rank's term; to be used inside `bmrm.mpi.leading.lead`.

    For risks of one's own, `StructuredRisk` say; data sets with losses have `shared_risk`.

    Parameters
    ----------
    term : makes this rank's term when told the mass of all ranks, by which it divides.
    mass : of this rank's examples.
    group : the ranks.
    """
    if isinstance(group, Alone):
        return term(mass)
    from bmrm.mpi.multiplexed import MultiplexedRisk

    total = float(group.sum(np.array([mass]))[0])
    with together(group):
        mine = term(total)
        sample_risk(mine, always=isinstance(mine, StructuredRisk))
    return MultiplexedRisk(mine, group)  # type: ignore[arg-type]


Shared = tuple["Share", ScoreFunction | None]
"""The share of this rank and, on rank 0, phi of all rows if it is not a sum over ranks."""


def _by_rows(
    data: Dataset, loss: Loss, group: MpiGroup, summary: Summary, threads: int | None, options: Mapping[str, Any]
) -> Shared:
    from bmrm.mpi.share import Share

    if facts_of(loss).scattered_groups:
        _refuse_parted_groups(data.targets, group)
    with together(group):
        bound = BoundLoss(loss, data.targets, summary)
        sample_loss(loss, data.targets, summary)
    mass = float(group.sum(np.array([bound.whole.mass]))[0])
    with together(group):
        risk = LinearRisk(data, loss, bound=bound, mass=mass, threads=threads, **options)
    return Share.of(risk), None


def _refuse_parted_groups(targets: Targets, group: Group) -> None:
    """Collective: InputError where rows of one group are on two ranks."""
    mine = np.unique(targets.groups) if targets.groups is not None else np.zeros(0, np.int64)
    names, owners = group.gather_array(mine), group.gather_array(np.full(mine.size, group.rank, np.int64))
    with together(group):
        if names is not None and owners is not None:
            order = np.argsort(names, kind="stable")
            twice = np.flatnonzero(np.diff(names[order]) == 0)
            if twice.size:
                at = order[twice[0] : twice[0] + 2]
                raise InputError(
                    f"query {names[at[0]]} has rows on the ranks {owners[at[0]]} and {owners[at[1]]}; expected all"
                    " rows of a query in one file and, there, after one another"
                )


def _whole_sample(
    data: Dataset, loss: Loss, group: MpiGroup, summary: Summary, threads: int | None, options: Mapping[str, Any]
) -> Shared:
    from bmrm.mpi.share import Share

    targets = gather_targets(data.targets, group)
    phi, per_row, infimum = None, 1, 0.0
    with together(group):
        if targets is not None:
            phi = LossPhi(BoundLoss(loss, targets, summary))
            sample_loss(loss, targets, summary)
            per_row, infimum = phi.facts.scores_per_row, phi.facts.infimum
    per_row = group.broadcast(per_row)
    map = DataMap(data.X, scores_per_row=per_row, workers=Workers(threads), **options)
    digest = identity(data, loss, summary, map.columns, options["bias"])
    size = problem_size(data.X, map.columns, options["bias"], map.workers.threads)
    return Share(map.dim, infimum, data.rows, None, map, None, digest, size, Space(map.inputs, per_row)), phi


def _sorted_sample(
    data: Dataset, loss: Loss, group: MpiGroup, summary: Summary, threads: int | None, options: Mapping[str, Any]
) -> Shared:
    """As if the loss were a sum over rows: the ranks speak to one another inside its evaluation."""
    from bmrm.mpi.sample_sort import SampleSort, warm_up
    from bmrm.mpi.share import Share

    sorting = cast(SortsOverRanks, loss)
    group.first_per_node(lambda: warm_up(sorting, summary))
    targets = in_mean_unit(data.targets, summary)
    with together(group):
        prepared = sorting.prepare_over_ranks(targets, summary, SampleSort(group))
    prepared.meet()
    with together(group):
        bound = BoundLoss(loss, targets, summary, prepared)
        risk = LinearRisk(data, loss, bound=bound, threads=threads, **options)
    return Share.of(risk), None
