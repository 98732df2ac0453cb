"""What every loss of the package must be besides the laws of `bmrm.checks`: functions that raise AssertionError."""

import itertools
from unittest import mock

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Scored, Targets, ability, facts_of
from bmrm.problem.loss import completed
from bmrm.risk import linear_map, score_function
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.score_function import BoundLoss, LossPhi
from tests.conformance.loss_cases import plain_targets
from tests.conformance.slow_twins import TWINS

PROPERTIES = {}


def law(function):
    PROPERTIES[function.__name__] = function
    return function


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def near(a, b, tolerance=1e-11):
    sizes = np.abs(np.asarray(b))
    largest = np.max(sizes, where=np.isfinite(sizes), initial=0.0)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1.0 + largest))


@law
def value_follows_the_formula(case):
    twin = TWINS.get(case.loss.name)
    prepared = case.prepare()
    for f in case.all_scores():
        if twin is not None:
            near(prepared.value_and_slope(f)[0], twin(case.loss, plain_targets(case), f.tolist()))


@law
def kernels_follow_the_formulas(case):
    """The sweep, weighted or not, and the curve along a step, against `value` and `slope`."""
    draw = np.random.default_rng(5).uniform
    weights = [None, case.spread(lambda n: draw(0.5, 2.0, n))] if case.loss.weighted else [None]
    for w, f in itertools.product(weights, case.all_scores()):
        prepared = case.prepare(case.weighing(w))
        value, slope = prepared.value_and_slope(f)
        if case.by_rows:
            factors = np.ones(case.rows) if w is None else w
            near(value, np.sum(factors * case.loss.value(f, prepared.y)))
            near(slope, (factors * case.loss.slope(f, prepared.y).T).T)
        step, ts = case.generic_scores(9), np.array([-1.0, 0.0, 0.25, 3.0])
        values, derivatives = completed(prepared).along(f, step)(ts)
        for t, v, d in zip(ts, values, derivatives, strict=True):
            value, slope = prepared.value_and_slope(f + t * step)
            near(v, value, 1e-10)
            near(d, np.sum(slope * step), 1e-8)


def features(case, values):
    """(rows, 5) features, sparse where `values` is "ones" or "sparse"."""
    rng = np.random.default_rng(11)
    X = (rng.random((case.rows, 5)) < 0.4).astype(float)
    return X if values == "ones" else X * rng.normal(size=X.shape)


def dataset(case, X):
    return Dataset.from_arrays(X, case.targets.y, groups=case.targets.groups)


def weights_of(risk):
    return frozen(np.random.default_rng(12).normal(size=risk.dim))


@law
def storage_is_nothing(case):
    from scipy.sparse import csr_matrix

    for values in ("ones", "sparse"):
        X = features(case, values)
        dense, sparse = LinearRisk(dataset(case, X), case.loss), LinearRisk(dataset(case, csr_matrix(X)), case.loss)
        assert (sparse.data.X.values is None) == (values == "ones")
        w = weights_of(dense)
        for a, b in zip(dense.value_and_subgradient(w), sparse.value_and_subgradient(w), strict=True):
            near(a, b)


@law
def float32_is_near(case):
    X = features(case, "sparse").astype(np.float32)
    single, double = (LinearRisk(dataset(case, x), case.loss) for x in (X, X.astype(np.float64)))
    w = weights_of(double)
    for a, b in zip(single.value_and_subgradient(w), double.value_and_subgradient(w), strict=True):
        near(a, b)
    rounded = LinearRisk(dataset(case, features(case, "sparse")), case.loss)
    near(single.value_and_subgradient(w)[0], rounded.value_and_subgradient(w)[0], 1e-5)


@law
def inputs_stay_as_they_are(case):
    y = case.targets.y
    y = LabelSets(frozen(y.indptr), frozen(y.labels)) if isinstance(y, LabelSets) else frozen(y)
    groups = None if case.targets.groups is None else frozen(case.targets.groups)
    prepared = case.prepare(Targets(y, frozen(np.ones(case.rows)), groups))
    for f in case.all_scores():
        before = f.copy()
        value, slope = prepared.value_and_slope(f)
        np.testing.assert_array_equal(f, before)
        again, same = prepared.value_and_slope(frozen(f))
        assert value == again
        np.testing.assert_array_equal(slope, same)
        assert slope.flags.writeable
        assert not np.shares_memory(slope, f)


def wrong_targets(case):
    """Targets outside the domain, by what the message must say of them."""
    text, two = np.array(["x"] * case.rows), np.full((case.rows, 2), 1.0)
    numbers = {"nan": np.full(case.rows, np.nan), "x": text, "inf": np.full(case.rows, np.inf), "shape": two}
    binary = {"only one class: 7": np.full(case.rows, 7.0), "3 labels: 0, 1, 2": np.arange(case.rows) % 3.0}
    return {
        "regression": numbers,
        "multivariate": {"nan": np.full((case.rows, 2), np.nan), "text": text},
        "binary": binary,
        "multiclass": {"only one class: 'x'": text},
        "multilabel": {"set of labels": text, "only one label: 7": LabelSets.from_rows([[7.0]] * case.rows)},
        "ontology": {"'x'": text, "label per row": two},
        "novelty": {},
        "ranking": numbers,
        "ordinal": numbers,
        "sequence": {"only one label: 'x'": text},
    }[case.loss.task]


@law
def domain_is_checked(case):
    for said, y in wrong_targets(case).items():
        with pytest.raises(InputError, match=f"{case.loss.title}.*{said}"):
            case.prepare(case.with_y(y))
    if case.summary().labels:
        strange = np.full(case.rows, 99.0)
        y = LabelSets.from_rows(strange[:, None]) if isinstance(case.targets.y, LabelSets) else strange
        with pytest.raises(InputError, match=f"{case.loss.title}.*99"):
            case.prepare(case.with_y(y), case.summary())
    for bad in (-1.0, np.nan):
        with pytest.raises(InputError, match=f"{case.loss.title}.*weight of row 1 is {bad:g}"):
            case.prepare(case.weighing(np.where(np.arange(case.rows) == 1, bad, 1.0)), case.summary())


@law
def chunks_and_threads_are_nothing(case):
    X = features(case, "sparse")
    plain = LinearRisk(dataset(case, X), case.loss, threads=1)
    w = weights_of(plain)
    expected = plain.value_and_subgradient(w)
    with (
        mock.patch.object(linear_map, "CHUNK_ROWS", 5),
        mock.patch.object(linear_map, "CHUNK_BYTES", 1),
        mock.patch.object(linear_map, "WORK_PER_THREAD", 1),
        mock.patch.object(score_function, "ROWS_PER_THREAD", 4),
    ):
        threaded = LinearRisk(dataset(case, X), case.loss, threads=3)
        found = threaded.value_and_subgradient(w)
        scored = ability(threaded, Scored)
        value, slope = scored.phi.value_and_slope(scored.map.matvec(w))
        for a, b, c in zip(found, expected, (value, scored.map.rmatvec(slope)), strict=True):
            near(a, b)
            near(c, b)


@law
def parts_add_up(case):
    """As ranks do it: rows shared out, one summary, and the mass of all."""
    X = features(case, "sparse")
    whole = LinearRisk(dataset(case, X), case.loss)
    w = weights_of(whole)
    value, subgradient = whole.value_and_subgradient(w)
    cuts = [slice(0, 6), slice(6, 6), slice(6, 24), slice(24, case.rows)]  # between groups
    summaries = [case.loss.summarise(case.chosen(cut)) for cut in cuts]
    summary = summaries[0]
    for other in summaries[1:]:
        summary = summary.merge(other)
    if case.loss.decomposes != "no":
        parts = [Dataset(X[cut], case.chosen(cut)) for cut in cuts]
        risks = [LinearRisk(part, case.loss, summary=summary, mass=whole.local_mass) for part in parts]
        results = [risk.value_and_subgradient(w) for risk in risks]
        near(sum(risk.local_mass for risk in risks), whole.local_mass)
        near(sum(risk.infimum for risk in risks), whole.infimum)
    else:
        maps = [DataMap(X[cut], scores_per_row=whole.scores_per_row) for cut in cuts]
        phi = LossPhi(BoundLoss(case.loss, case.targets, summary))
        total, slope = phi.value_and_slope(np.concatenate([each.matvec(w) for each in maps]))
        results = [(total / len(cuts), each.rmatvec(slope[cut])) for each, cut in zip(maps, cuts, strict=True)]
    near(sum(result[0] for result in results), value)
    near(sum(result[1] for result in results), subgradient)


@law
def description_rebuilds_it(case):
    description = LOSSES.describe(case.loss)
    again = LOSSES.make(description.pop("name"), description)
    assert again == case.loss
    assert hash(again) == hash(case.loss)


@law
def measures_are_named(case):
    assert case.loss.metrics


@law
def slopes_are_linear_where_it_is_quadratic(case):
    """And nowhere else."""
    prepared, one, other = case.prepare(), case.generic_scores(3), 5.0 * case.generic_scores(4)
    slopes = [prepared.value_and_slope(f)[1] for f in (one, other, 0.5 * (one + other))]
    linear = np.allclose(0.5 * (slopes[0] + slopes[1]), slopes[2], rtol=1e-12, atol=1e-12 * np.abs(slopes[1]).max())
    assert linear == facts_of(case.loss).quadratic
