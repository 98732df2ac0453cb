"""Whether a loss keeps the laws: `check_loss`. Those of proximal maps are in `proximal.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bmrm.checks import convex
from bmrm.checks.cases import Case, Rows
from bmrm.checks.convex import CONVEX_LAWS, UNIT, Array, Function, Place
from bmrm.checks.laws import BrokenLawError, Laws, NotOfferedError, Report, Violation, raised, shown
from bmrm.checks.plug_in import declared, groups_for, instance_of, name_of, rebuilt, targets_for, title_of
from bmrm.checks.proximal import PROX_LAWS
from bmrm.data.dataset import check_structure
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.losses.base import RowLoss
from bmrm.problem import BmrmError, InputError, Targets, facts_of, lacking

LOSS_LAWS: Laws[Case] = Laws({"dataclass": lambda case: rebuilt(case.loss), **CONVEX_LAWS.all})
law = LOSS_LAWS.law


def members(loss: Any) -> Iterator[Violation]:
    """What `Loss` has, whatever its class."""
    for name in lacking(loss, ("task", "decomposes", "summarise", "prepare")):
        text = f"{name_of(loss)} has no `{name}`; derive from MarginLoss, RegressionLoss or MulticlassLoss"
        yield Violation("members", "", np.inf, text)


@law("shapes")
def _shapes(case: Case) -> Iterator[Violation]:
    """Results are what they should be, at every place; of all rows, of one, of none."""
    prepared = case.given
    for name in lacking(prepared, ("scores_per_row", "mass", "infimum", "smooth", "value_and_slope")):
        text = f"what `prepare` returns ({type(prepared).__name__}) has no `{name}`, see bmrm.problem.PreparedLoss"
        raise BrokenLawError(Violation("shapes", "", np.inf, text))
    yield from arrays_of_rows(case)
    yield from CONVEX_LAWS.all["shapes"](case)


def arrays_of_rows(case: Case) -> Iterator[Violation]:
    """`value` and `slope` of the loss itself, where it has them: a number for each row."""
    if any(lacking(case.loss, ("value", "slope"))) or any(lacking(case.given, ("y",))):
        return
    f, y = case.generic_scores(case.seed), case.whole.y
    for name, method, expected in (("value", case.loss.value, (case.rows,)), ("slope", case.loss.slope, case.shape())):
        try:
            result = method(f.copy(), y)
            found = np.asarray(result)
        except BmrmError:
            raise
        except Exception as error:
            raise BrokenLawError(Violation("runs", "", np.inf, f"{name}(f, y) {raised(error)}")) from error
        if found.shape != expected or found.dtype.kind not in "fiub":
            number = found.shape == () and found.dtype.kind in "fiub"
            what = "one number" if number else "None" if result is None else f"shape {found.shape}"
            text = f"{name}(f, y) gave {what} for {case.rows} rows, expected one entry per row: shape {expected}"
            raise BrokenLawError(Violation("shapes", "", np.inf, text))
    yield from ()


@law("second derivative")
def _second_derivative(case: Case) -> Iterator[Violation]:
    if case.whole.hessian == "none":
        raise NotOfferedError("the loss has no `curvature` or `hessian_product`")
    function, points = case.whole_part()
    rng = np.random.default_rng(case.seed + 6)
    for point in [*points[:2], *(case.generic_scores(case.seed + k) for k in range(3, 6))]:
        steps = [rng.normal(size=point.shape) for _ in range(2)]
        yield from convex.second_derivative(function, function.at(point), steps, case.whole.hessian_product)


@law("along")
def _along(case: Case) -> Iterator[Violation]:
    if any(lacking(case.given, ("along",))) or (isinstance(case.loss, RowLoss) and case.loss.along_kernel is None):
        raise NotOfferedError("values along a line are made of values and slopes")
    function, points = case.whole_part()
    step = case.generic_scores(case.seed + 9)
    for point in points:
        place = function.at(point)
        if place.finite:
            yield from convex.lines(function, place, step, case.whole.along(point.copy(), step.copy()))


@law("sum over rows")
def _sum(case: Case) -> Iterator[Violation]:
    if not case.decomposes:
        raise NotOfferedError("the loss is no sum over rows")
    function, points = case.whole_part()
    parts = [(rows, case.function(rows)) for rows in case.terms()]
    for point in points:
        place = function.at(point)
        found = [part.at(case.rows_of(point, rows)) for rows, part in parts]
        total = sum(one.value for one in found)
        rounding = place.rounding + sum(one.rounding for one in found if one.finite)
        excess = abs(total - place.value) if np.isfinite(total) or place.finite else 0.0
        if excess > rounding:
            text = f"the loss of all rows is {place.value:.10g}, the sum of those of each {total:.10g}"
            yield function.violation("sum over rows", point, excess - rounding, text)


@law("order of rows")
def _order(case: Case) -> Iterator[Violation]:
    units = case.units()
    order = np.concatenate([units[k] for k in np.random.default_rng(8).permutation(len(units))])
    yield from _the_same(case, "order of rows", case.whole, case.prepare(case.chosen(order)), order, "in another order")


@law("weights")
def _weights(case: Case) -> Iterator[Violation]:
    rng = np.random.default_rng(6)
    counts = case.spread(lambda n: rng.integers(1, 4, n).astype(np.float64))
    if refused(case, counts):
        return
    weighted = case.prepare(case.weighing(counts))
    copies, targets = case.copies(counts)
    yield from _the_same(
        case, "weights", weighted, case.prepare(targets), copies, "repeated as often as its weight says"
    )


@law("weight 0")
def _weight_zero(case: Case) -> Iterator[Violation]:
    rng = np.random.default_rng(7)
    present = case.spread(lambda n: (rng.random(n) < 0.7).astype(np.float64))
    if refused(case, present):
        return
    weighted = case.prepare(case.weighing(present))
    rows = np.flatnonzero(present)
    yield from _the_same(case, "weight 0", weighted, case.prepare(case.chosen(rows)), rows, "without those of weight 0")


def refused(case: Case, weights: Array) -> bool:
    """Whether the loss gives weights no meaning, and says so; raises BrokenLawError where it takes them."""
    if facts_of(case.loss).weighted:
        return False
    try:
        case.prepare(case.weighing(weights))
    except InputError:
        return True
    text = "`weighted` is False, but weights other than 1 are not refused"
    raise BrokenLawError(Violation("weights", "", np.inf, text))


def _the_same(case: Case, law: str, one: Any, two: Any, rows: Rows, how: str) -> Iterator[Violation]:
    """Two prepared losses, of the same rows and of `rows` of them, give the same sum and slopes."""
    if abs(one.mass - two.mass) > 1e-12 * abs(one.mass):
        yield Violation(
            law, "", abs(one.mass - two.mass), f"the mass is {one.mass:.10g}, {two.mass:.10g} with rows {how}"
        )
    count = int(np.prod(case.shape()))
    first = Function(lambda f: one.value_and_slope(f), case.shape(), "f", "slope", terms=count)
    second = Function(lambda f: two.value_and_slope(f), case.shape_of(len(rows)), "f", "slope", terms=count)
    for f in case.all_scores(case.seed + 1):
        here, there = first.at(f), second.at(case.rows_of(f, rows))
        if not (here.finite and there.finite):
            if here.finite != there.finite:
                yield first.violation(law, f, np.inf, f"the sum is {here.value:.6g}, {there.value:.6g} with rows {how}")
            continue
        excess = abs(here.value - there.value) - here.rounding - there.rounding
        if excess > 0.0:
            text = f"the sum is {here.value:.10g}, {there.value:.10g} with rows {how}"
            yield first.violation(law, f, excess, text)
        yield from _slopes_added(case, law, first, here, there, rows, how)


def _slopes_added(
    case: Case, law: str, function: Function, here: Place, there: Place, rows: Rows, how: str
) -> Iterator[Violation]:
    per_copy, parameters = case.split(there.slope)
    table, own = case.split(here.slope)
    summed = np.zeros_like(table)
    np.add.at(summed, rows, per_copy)
    apart = np.concatenate((np.abs(summed - table).ravel(), np.abs(own - parameters)))
    rounding = 8.0 * (here.slope_rounding + there.slope_rounding) + 64.0 * UNIT * float(
        np.max(np.abs(summed), initial=0.0)
    )
    if apart.max(initial=0.0) > rounding:
        worst = int(np.argmax(apart))
        text = f"entry {worst} of the slope is {shown(here.slope.ravel()[worst])}, another with rows {how}"
        yield function.violation(law, here.x, float(apart[worst]), f"{text}, by {apart[worst]:.3g}")


@law("predictions")
def _predictions(case: Case) -> Iterator[Violation]:
    if any(lacking(case.loss, ("predict",))):
        raise NotOfferedError("the loss has no `predict`")
    labels = case.summary().labels
    found = np.asarray(case.predict(case.generic_scores(case.seed), labels))
    if found.shape[:1] != (case.rows,):
        yield Violation("predictions", "", np.inf, f"predict gave shape {found.shape} for {case.rows} rows")
    elif case.loss.task == "multilabel":  # truth values: whether a row has a label
        if found.dtype != np.bool_ or found.shape != (case.rows, len(labels)):
            said = f"predict gave {found.dtype} of shape {found.shape}, expected truth values (rows, labels)"
            yield Violation("predictions", "", np.inf, said)
    elif not labels and case.loss.task != "novelty":
        if not np.isfinite(found).all():
            yield Violation("predictions", "", np.inf, "predict gave numbers that are not finite")
    else:
        strange = set(found.ravel().tolist()) - (set(labels) or {-1.0, 1.0})
        if strange:
            yield Violation("predictions", "", np.inf, f"predict gave {sorted(strange)[0]!r}, which is no label")


ALL_LAWS: Laws[Case] = Laws(LOSS_LAWS.all | PROX_LAWS.all)


def check_loss(
    loss: Any,
    y: Any = None,
    *,
    groups: Any = None,
    structure: Any = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Report:
    """Try whether a loss keeps the laws that solvers and their lower bounds rest on.

    They are: results of the right shape, finite, new arrays, the same each time, inputs left alone; values never below
    the infimum; the slope is that of the values, f -> loss(f) is convex, its planes lie below it; the loss of all
    rows is the sum of those of each (where it says so), in any order; a weight means so many copies of the row; and,
    where they are offered, second derivatives, values along a line and proximal maps. Differences count only beyond
    rounding, which is measured where they are met.

    Parameters
    ----------
    loss : an instance, a class (made with defaults and examples), or a name as configs have it (`module:Class`).
    y : (rows,) targets inside the domain; None to make some up for the loss's task.
    groups : (rows,) integers, for losses over groups; None for none.
    structure : (rows, numbers) integers, for losses over structures that ask for them; None for none.
    options : of the loss, where it is given by name or class.
    seed : of the scores that are tried.

    Returns
    -------
    Report
        `ok`, or a place for each law that is broken; `print` it. `raise_if_failed()` raises InputError.

    Raises
    ------
    InputError
        No loss of this name, a parameter without default and example, targets that the loss refuses, or none can be
        made up for a task of its own.

    Examples
    --------
    >>> print(extend.check_loss(PseudoHuber()))      # doctest: +SKIP
    >>> extend.check_loss("my_losses:PseudoHuber").raise_if_failed()      # doctest: +SKIP
    """
    loss = instance_of(LOSSES, loss, options)
    title = title_of(loss)
    missing = next(members(loss), None) or next(declared(loss), None)
    if missing is not None:
        return ALL_LAWS.after(title, missing)
    groups = groups_for(loss) if groups is None and y is None else groups
    y = targets_for(loss) if y is None else y
    groups = None if groups is None else np.asarray(groups, np.int64)
    y_array: Any = y if isinstance(y, LabelSets) else np.asarray(y)
    structure = None if structure is None else check_structure(structure, len(y_array))
    targets = Targets(y_array, None, groups, structure=structure)
    return ALL_LAWS.report(title, Case(loss, targets, seed))
