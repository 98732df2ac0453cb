"""The objects of a guarded rank: all that rank 0 may ask of it, each request judged before anything of it goes.

What is not here would reveal single rows; `REVEALS` says what. Sums over the rows of a rank reveal how these lie on
the whole, where they are made of many (`Watch.many`) and the point was not chosen to single some out (`Watch.spread`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.guard import Guarding, RefusedError
from bmrm.mpi.local import SCORES, Kind, LocalObjects
from bmrm.mpi.requests import Answer, Kept, Request, RequestError
from bmrm.mpi.share import Rank
from bmrm.mpi.watch import Watch
from bmrm.problem import Facts, Vector
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.problem.facts import Hessian

Floats = NDArray[np.float64]
Curve = Callable[[Vector], tuple[Vector, Vector]]


class Known:
    """Numbers of rows that a guarded rank keeps, and where they come from.

    Attributes
    ----------
    numbers : (rows,) or (rows, scores).
    w : where they are scores: numbers = A w and constants; None where they are anything else, such as slopes.
    """

    __slots__ = ("numbers", "w")
    __array_ufunc__ = None

    def __init__(self, numbers: Floats, w: Vector | float | None = None) -> None:
        self.numbers, self.w = numbers, w

    def __rmul__(self, factor: float) -> Known:
        return Known(factor * self.numbers, None if self.w is None else factor * self.w)

    def __add__(self, other: Known) -> Known:
        both = self.w is not None and other.w is not None
        return Known(self.numbers + other.numbers, self.w + other.w if both else None)  # type: ignore[operator]


class _Judged:
    """Objects with a watch."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._risk = watch, watch.risk
        self._map: Any = watch.risk.map

    def _kept(self, given: Any) -> Known:
        if not isinstance(given, Known):
            self._watch.refuse("numbers for rows come from elsewhere, which could choose single ones")
        return given

    def _scores(self, given: Any) -> tuple[Floats, Vector | float]:
        known = self._kept(given)
        if known.w is None:
            self._watch.refuse("scores that are no products with weights, which could choose single rows")
        return known.numbers, known.w

    def _slope(self, given: Any) -> Floats:
        known = self._kept(given)
        if known.w is not None:
            self._watch.refuse("scores in the place of slopes")
        self._watch.many(known.numbers)
        return known.numbers

    def _evaluated(self, f: Any) -> tuple[float, Floats]:
        """phi and its slope at scores, where the point is no suspicious one."""
        numbers, w = self._scores(f)
        value, slope = self._risk.phi.value_and_slope(numbers)
        self._watch.evaluated(w, value, slope)
        return value, slope

    def _at(self, w: Any) -> Known:
        found = self._watch.weights(w)
        return Known(self._map.matvec(found), found.copy())

    def _pulled(self, slope: Floats, parts: Any) -> Any:
        return self._map.rmatvec_parts(slope, int(parts)) if parts else self._map.rmatvec(slope)


class GuardedTerm(_Judged):
    """This rank's term of R."""

    def value_and_subgradient(self, w: Any, parts: Any = 0) -> tuple[float, Any]:
        """As of `Risk`; the subgradient in so many parts, if in any."""
        value, slope = self._evaluated(self._at(w))
        return value, self._pulled(slope, parts)


class GuardedMap(_Judged):
    """The products with this rank's rows."""

    def matvec(self, w: Any) -> Known:
        """A w."""
        return self._at(w)

    def rmatvec(self, slope: Any) -> Vector:
        """A' slope."""
        found: Vector = self._map.rmatvec(self._slope(slope))
        return found

    def rmatvec_parts(self, slope: Any, parts: Any) -> Any:
        """The same in parts."""
        return self._map.rmatvec_parts(self._slope(slope), int(parts))

    def diagonal(self, weights: Any) -> Vector:
        """The diagonal of A' weights A."""
        found: Vector = self._map.diagonal(self._slope(weights))
        return found


class GuardedParts(GuardedTerm):
    """What makes planes."""

    def plane_at(self, phi: Any, f: Any, parts: Any) -> tuple[float, float, Known, Any]:
        """As of `bmrm.mpi.scored.Parts`, of this rank's phi."""
        if phi is not None:
            self._watch.refuse("another loss than that of the problem")
        value, slope = self._evaluated(f)
        product = GuardedScores(self._watch).product(Known(slope), f)
        return value, product, Known(slope), self._pulled(slope, parts)

    def pulled(self, slope: Any, f: Any, parts: Any) -> tuple[float, Any]:
        """As of `bmrm.mpi.scored.Parts`."""
        numbers = self._slope(slope)
        return GuardedScores(self._watch).product(slope, f), self._pulled(numbers, parts)


class GuardedPhi(_Judged):
    """This rank's phi: its values, slopes and products with its second derivative, not what it is row by row."""

    @property
    def facts(self) -> Facts:
        """Of phi, as far as they may be asked for."""
        facts = self._risk.phi.facts
        hessian: Hessian = "product" if facts.curved else "none"
        return replace(facts, hessian=hessian, hessian_total=False, prox=False, piecewise_linear=False)

    def value_and_slope(self, f: Any) -> tuple[float, Known]:
        """As of `ScoreFunction`."""
        value, slope = self._evaluated(f)
        return value, Known(slope)

    def along(self, f: Any, step: Any) -> GuardedCurve:
        """As of `ScoreFunction`."""
        return GuardedCurve(self._watch, self._scores(f), self._scores(step))

    def hessian_product(self, f: Any, step: Any) -> Known:
        """As of `ScoreFunction`."""
        (numbers, _), (direction, w) = self._scores(f), self._scores(step)
        self._watch.spread(np.broadcast_to(np.asarray(w), (self._risk.dim,)))
        return Known(self._risk.phi.hessian_product(numbers, direction))

    def constant(self, b: Any) -> Known:
        """As of `ScoreFunction`."""
        return Known(self._risk.phi.constant(np.asarray(b, np.float64)), 0.0)

    def total(self, scores: Any) -> Vector:
        """As of `ScoreFunction`."""
        found = self._kept(scores).numbers
        self._watch.many(found)
        return self._risk.phi.total(found)

    def magnitude(self, scores: Any) -> Vector:
        """As of `ScoreFunction`."""
        found = self._kept(scores).numbers
        self._watch.many(found)
        return self._risk.phi.magnitude(found)


class GuardedCurve:
    """phi along a step."""

    def __init__(self, watch: Watch, f: tuple[Floats, Vector | float], step: tuple[Floats, Vector | float]) -> None:
        self._watch, self._f, self._step, self._count = watch, f, step, 0
        self._curve: Curve = watch.risk.phi.along(f[0], step[0])

    def __call__(self, t: Any) -> tuple[Vector, Vector]:
        """Values and derivatives at some t."""
        watch, (f, w), (step, d) = self._watch, self._f, self._step
        ts = np.atleast_1d(np.asarray(t, np.float64))
        self._count += ts.size
        watch.trials(self._count)
        parts = []
        for one in ts.tolist():
            value, slope = watch.risk.phi.value_and_slope(f + one * step)
            watch.many(slope)
            parts.append(watch.part(np.broadcast_to(np.asarray(w + one * d), (watch.risk.dim,)), value))
        if np.any(d):  # a free intercept is tried far away, which tells of labels only
            watch.falls(min(parts))
        return self._curve(ts)


class GuardedScores(_Judged):
    """What is asked of scores alone."""

    def product(self, one: Any, other: Any) -> float:
        """The inner product over rows and their scores."""
        first, second = self._kept(one).numbers, self._kept(other).numbers
        self._watch.many(first, second)
        return float(np.vdot(first, second))


class GuardedRounding(_Judged):
    """What is added on this rank."""

    def at(self, w: Any, constant: Any, reach: Any) -> tuple[float, float, float, Vector]:
        """As of `bmrm.mpi.rounding.RankRounding`."""
        f, b = self._at(w), None if constant is None else np.asarray(constant, np.float64)
        self._evaluated(f if b is None else f + Known(self._risk.phi.constant(b), 0.0))
        found: Magnitudes = self._watch.rank.share.offered(Rounding).at(w, b, reach)
        return found.terms, found.length, found.growth * float(found.sizes.sum()), found.sizes


@dataclass(frozen=True)
class GuardedKind(Kind):
    """Objects of one kind.

    Attributes
    ----------
    answers : for each method what may become of its results: `kept`, `sum`, `total` (a sum, in pieces or at once) or
        `text`.
    """

    answers: Mapping[str, str]


def _kind(find: Callable[[Watch], Any] | None, kept: str = SCORES, **answers: str) -> GuardedKind:
    """`kept`: the kind of what `along` returns is another than scores."""
    kinds = {method: "curve" if method == "along" else kept for method in answers}
    return GuardedKind(find, kinds, answers)


GUARDED: Mapping[str, GuardedKind] = {
    "risk": _kind(GuardedTerm, value_and_subgradient="sum sum"),
    "map": _kind(GuardedMap, matvec="kept", rmatvec="sum", rmatvec_parts="total", diagonal="sum"),
    "parts": _kind(GuardedParts, value_and_subgradient="sum total", plane_at="sum sum kept total", pulled="sum total"),
    "phi": _kind(
        GuardedPhi,
        value_and_slope="sum kept",
        along="kept",
        hessian_product="kept",
        constant="kept",
        total="sum",
        magnitude="sum",
    ),
    "curve": _kind(None, __call__="sum sum"),
    SCORES: _kind(GuardedScores, product="sum"),
    "rounding": _kind(GuardedRounding, at="sum sum sum sum"),
    "identity": _kind(lambda watch: watch.rank.share.identity, fingerprint="text"),
}
"""All that a guarded rank answers."""
ALLOWED: Mapping[str, tuple[Answer, ...]] = {
    "kept": (),
    "sum": (Answer.SUM,),
    "total": (Answer.SUM, Answer.STREAM),
    "text": (Answer.GATHER,),
}
"""What `GuardedKind.answers` stands for; what is kept goes nowhere."""

ONE_BY_ONE = "sums over rows that rank 0 chooses"
PAIRS = "products of two features, which few rows may have together"
REVEALS: Mapping[tuple[str, str], str] = {
    ("map", "active"): "how many rows matter at a point",
    ("parts", "gram"): PAIRS,
    ("parts", "gram_product"): PAIRS,
    ("parts", "gram_blocks"): PAIRS,
    ("parts", "gram_work"): PAIRS,
    ("phi", "breakpoints"): "where on a line each row has its kink, which is its score",
    ("phi", "hessian_diagonal"): "second derivatives row by row",
    ("phi", "hessian_shares"): "second derivatives row by row",
    ("phi", "hessian_total"): "second derivatives in constants",
    ("phi", "moreau"): "values at scores that are no products with weights",
    ("phi", "moreau_along"): "values at scores that are no products with weights",
    (SCORES, "itself"): "scores",
    ("samples", "draw"): ONE_BY_ONE,
    ("subsets", "value_and_subgradient_of"): ONE_BY_ONE,
    ("subsets", "active_set"): ONE_BY_ONE,
    ("active set", "step"): ONE_BY_ONE,
    ("active set", "rest"): ONE_BY_ONE,
    ("rows", "gather"): "rows",
    ("modified", "target_sums"): "sums of targets",
    ("modified", "mass"): ONE_BY_ONE,
    ("modified", "variant"): ONE_BY_ONE,
    ("blocks", "values_and_subgradients"): ONE_BY_ONE,
    ("blocks", "infima"): ONE_BY_ONE,
    **{("slices", method): "a solver on each rank" for method in ("run", "point", "state")},
    **{("ascents", method): "steps of single rows" for method in ("size", "rounds", "begin")},
    **{
        ("ascent", method): "steps of single rows"
        for method in ("unshrink", "totals", "derivative", "settle", "offset", "sizes", "slope", "scores")
    },
    ("rounding", "absolute_scores"): "scores",
    ("rounding", "absolute_rmatvec"): ONE_BY_ONE,
    ("validation", "scores"): "scores",
}
"""What the other requests of `bmrm.mpi.kinds` would reveal: a guarded rank refuses them."""


class GuardedObjects(LocalObjects):
    """The objects of one rank that judges every request, and agrees with the others before it answers.

    A rank that refuses says nothing more. Whether one has refused all ranks learn together, just before something
    would go from rank to rank.

    Parameters
    ----------
    rank : what there is.
    guarding : by what.
    """

    def __init__(self, rank: Rank, guarding: Guarding) -> None:
        super().__init__(rank, GUARDED)
        self.watch = Watch(rank, guarding.guard.min_rows)
        self._refusal: str | None = None
        self._closed = False

    def kind_made(self, request: Request) -> str:
        """As of `LocalObjects`; what is not allowed is refused by `answer`, as all else."""
        try:
            return super().kind_made(request)
        except RequestError:
            return SCORES

    def _found(self, find: Callable[[Any], Any]) -> Any:
        return find(self.watch)

    def _answer(self, request: Request, keeps: str) -> list[Any]:
        if self._closed:
            raise RefusedError("rank 0 asks on after a request was refused (data.guard)")
        result: Any = None
        if self._refusal is None:
            try:
                self._allowed(request)
                result = self._result(request)
            except (RefusedError, RequestError) as error:  # of what is not there, too
                self._refusal = self._refusal or str(error)
        if not request.answer or not all(isinstance(what, Kept) for what in request.answer):
            self._agree()
        if self._refusal is not None or self._closed:
            return [None] * len(request.answer)
        return self._dealt_with(result, request.answer, keeps)

    def _allowed(self, request: Request) -> None:
        """Refuse what is no request for a guarded rank, or asks that more becomes of it than may."""
        target = request.target
        kind: Any = super().kind_made(target) if isinstance(target, Request) else target
        if isinstance(kind, int):
            kind = self._entry(kind)[0]
        known = GUARDED.get(kind)
        if known is None or request.method not in known.answers:
            self.watch.refuse(f"it would hand out {REVEALS.get((kind, request.method), 'what nobody has looked at')}")
        words = known.answers[request.method].split()
        fits = [
            isinstance(what, Kept) if word == "kept" else what in ALLOWED[word]
            for word, what in zip(words, request.answer)
        ]
        if len(words) != len(request.answer) or not all(fits):
            self.watch.refuse("it asks for more than sums over rows")

    def _agree(self) -> None:
        """Collective: RefusedError on rank 0 where a rank refuses; the others wait for the end."""
        group = self.rank.group
        if not group.max(np.array([float(self._refusal is not None)]))[0]:
            return
        said = group.gather(self._refusal)
        self._closed = True
        if said is not None:
            rank, why = next((rank, why) for rank, why in enumerate(said) if why is not None)
            raise RefusedError(f"rank {rank}: {why}")
