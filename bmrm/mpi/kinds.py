"""The objects that every rank keeps, and all that rank 0 may ask of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bmrm.mpi.dual import RankAscents
from bmrm.mpi.gathered import NAME, RankRows
from bmrm.mpi.local import SAMPLE, SCORES, Kind
from bmrm.mpi.rounding import RankRounding
from bmrm.mpi.row_subsets import RankModified, RankSubsets
from bmrm.mpi.samples import RankSamples
from bmrm.mpi.scored import KeptScores, Parts
from bmrm.mpi.share import Rank
from bmrm.problem.abilities import Blocks


def _kind(find: Callable[[Rank], Any] | None, methods: str, **kept: str) -> Kind:
    """`methods` in a text; `kept` : those whose results are kept and no scores, with the kind of these."""
    return Kind(find, dict.fromkeys(methods.split(), SCORES) | kept)


PHI = (
    "value_and_slope breakpoints hessian_product hessian_diagonal hessian_shares hessian_total moreau constant total "
    "magnitude"
)

KINDS = {
    "risk": _kind(lambda rank: rank.share.risk, "value_and_subgradient"),
    "map": _kind(lambda rank: rank.share.map, "matvec rmatvec rmatvec_parts diagonal active"),
    "parts": _kind(Parts, "value_and_subgradient plane_at pulled gram gram_product gram_blocks gram_work"),
    "phi": _kind(lambda rank: rank.share.phi, PHI, along="curve", moreau_along="curve"),
    "curve": _kind(None, "__call__"),
    SCORES: _kind(lambda rank: KeptScores(), "itself product"),
    "subsets": _kind(RankSubsets, "value_and_subgradient_of", active_set="active set"),
    "active set": _kind(None, "step rest"),
    NAME: _kind(lambda rank: None if rank.share.data is None else RankRows(rank), "gather"),
    "samples": _kind(lambda rank: None if rank.share.sampled is None else RankSamples(rank), "", draw=SAMPLE),
    SAMPLE: _kind(None, ""),
    "modified": _kind(RankModified, "target_sums mass", variant="phi"),
    "blocks": _kind(lambda rank: rank.share.offered(Blocks), "values_and_subgradients infima"),
    "ascents": _kind(RankAscents, "size rounds", begin="ascent"),
    "ascent": _kind(None, "unshrink totals derivative settle offset sizes slope scores"),
    "rounding": _kind(RankRounding, "at absolute_scores absolute_rmatvec"),
    "identity": _kind(lambda rank: rank.share.identity, "fingerprint"),
    "validation": _kind(None, "scores"),
    "slices": _kind(None, "run point state"),
}
"""Objects and methods that a request may name. Arrays kept under a number are scores, an object of that name."""
