"""dual_coordinate for chains: the optimum of another solver, true bounds, warm starts, and refusals."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Scored, Status, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.dual import groups as dual_groups
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers.auto import Auto
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.line_search_bundle import LineSearchBundle

FEATURES, LABELS = 5, 3
SCALED = Columns(np.linspace(0.5, 2.0, FEATURES), np.linspace(-0.4, 0.6, FEATURES))
LENGTHS = (1, 4, 7, 2, 5, 3, 6, 1, 4, 5)


def data(store=np.asarray, weighted=False, ones=False, seed=0, lengths=LENGTHS):
    random = np.random.default_rng(seed)
    rows = sum(lengths)
    X = np.where(random.random((rows, FEATURES)) < 0.6, random.normal(size=(rows, FEATURES)), 0.0)
    X = (X != 0.0).astype(float) if ones else X
    y = (X @ random.normal(size=(FEATURES, LABELS)) + random.gumbel(size=(rows, LABELS))).argmax(axis=1)
    y[:LABELS] = np.arange(LABELS)
    groups = np.repeat(np.arange(len(lengths)), lengths)
    weights = np.repeat(random.integers(0, 4, len(lengths)), lengths).astype(float) if weighted else None
    return Dataset.from_arrays(store(X), y.astype(float), weights, groups)


def risk_of(examples, transitions="constant", loss="chain_margin", **options):
    return LinearRisk(examples, LOSSES.make(loss, {"transitions": transitions}), **options)


def by_another(risk, loss, regularizer, tolerance):
    if loss == "chain_crf" and not isinstance(regularizer, ElasticNet):
        return LBFGS(tolerance=tolerance, max_iterations=3000).minimize(risk, regularizer)
    return LineSearchBundle(tolerance=tolerance, max_iterations=3000).minimize(risk, regularizer)


both = pytest.mark.parametrize("loss", ["chain_margin", "chain_crf"])


CASES = {
    "plain": ({}, {}),
    "sparse, bias": ({"store": csr_array}, {"bias": True}),
    "only ones": ({"store": csr_array, "ones": True}, {"bias": True}),
    "scaled": ({"store": csr_array, "weighted": True}, {"columns": Columns(SCALED.scale)}),
    "shifted": ({}, {"columns": SCALED, "bias": True}),
    "weighted, float32": ({"store": lambda X: csr_array(X.astype(np.float32)), "weighted": True}, {}),
    "observed": ({"weighted": True}, {"transitions": "observed"}),
    "observed, sparse, bias": ({"store": csr_array}, {"transitions": "observed", "bias": True}),
}


@pytest.mark.parametrize(
    ("case", "regularizer"),
    [*((case, L2(0.02)) for case in CASES), *((case, ElasticNet(0.05, 0.3)) for case in ("shifted", "observed"))],
)
@both
def test_the_optimum_of_another_solver(case, regularizer, loss):
    of_data, of_risk = CASES[case]
    risk = risk_of(data(**of_data), loss=loss, **of_risk)
    ours = DualCoordinate(tolerance=1e-7).minimize(risk, regularizer)
    theirs = by_another(risk, loss, regularizer, 1e-7)
    assert ours.status is theirs.status is Status.CONVERGED
    assert theirs.lower_bound * (1.0 - 1e-12) <= ours.objective <= theirs.objective * (1.0 + 3e-7)
    for line in ours.history:
        assert line.lower_bound <= theirs.objective * (1.0 + 1e-12)


def phi_star(y, slope):
    """The conjugate of one sentence's loss by a linear program over all labelings; inf outside of its domain."""
    steps = len(y)
    every = np.array(list(itertools.product(range(LABELS), repeat=steps)))
    columns = []
    for path in every:
        column = np.zeros(steps * LABELS + LABELS**2)
        for labels, sign in ((path, 1.0), (y, -1.0)):
            column[np.arange(steps) * LABELS + labels] += sign
            np.add.at(column, steps * LABELS + labels[:-1] * LABELS + labels[1:], sign)
        columns.append(column)
    found = linprog(
        -(every != y).sum(axis=1).astype(float),
        A_eq=np.vstack((np.array(columns).T, np.ones(len(every)))),
        b_eq=np.append(slope, 1.0),
    )
    return found.fun if found.success else np.inf


def test_any_state_is_a_dual_point_of_one_sentence_and_its_offset_no_better_than_the_conjugate():
    examples = data(lengths=(5,))
    y = examples.targets.y.astype(int)
    risk = risk_of(examples)
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.1, seed=0)
    for _ in range(4):
        ascent.sweep()
        _, b = ascent.plane()
        assert b <= -phi_star(y, ascent.slope()) + 1e-9


@both
@pytest.mark.parametrize("case", CASES)
def test_any_state_proves_its_bound(case, loss, monkeypatch):
    """Also where no labeling more can be kept, and after starts that fit nothing."""
    monkeypatch.setattr(dual_groups, "PER_ROW", 0)
    monkeypatch.setattr(dual_groups, "BESIDES", 4)
    of_data, of_risk = CASES[case]
    risk, regularizer = risk_of(data(**of_data), loss=loss, **of_risk), L2(0.02)
    scored, steps = ability(risk, Scored), ability(risk, DualBlocks)
    least = by_another(risk, loss, regularizer, 1e-6)
    random = np.random.default_rng(1)
    f = scored.map.matvec(random.normal(size=risk.dim))
    slope = scored.phi.value_and_slope(f)[1]
    for start, near in ((None, None), (None, f), (slope, f), (random.normal(size=slope.shape), None)):
        ascent = steps.ascent(0.0, 0.02, seed=3, start=start, near=near)
        plain = start is None and near is None
        before = -np.inf if plain else plane_bound(regularizer, *ascent.plane(), -np.inf)
        for _ in range(5):
            ascent.sweep()
            a, b = ascent.plane()
            bound = plane_bound(regularizer, a, b, -np.inf)
            assert bound <= least.objective * (1.0 + 1e-12)
            for w in (least.w, random.normal(size=risk.dim)):
                assert a @ w + b <= risk.value_and_subgradient(w)[0] + 1e-12
            np.testing.assert_allclose(scored.map.rmatvec(ascent.slope()), a, atol=1e-12)
            assert ascent.value() == pytest.approx(bound, abs=1e-12)
        assert bound >= before


@both
@pytest.mark.parametrize("transitions", ["constant", "observed"])
def test_near_scores_alone_the_state_is_the_plane_there(loss, transitions):
    risk = risk_of(data(weighted=True), transitions, loss)
    scored = ability(risk, Scored)
    w = np.random.default_rng(2).normal(size=risk.dim)
    value, subgradient = risk.value_and_subgradient(w)
    a, b = ability(risk, DualBlocks).ascent(0.0, 0.1, seed=0, near=scored.map.matvec(w)).plane()
    assert a @ w + b == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(a, subgradient, atol=1e-12)


@both
def test_slopes_of_a_stronger_regularizer_are_a_good_start(loss):
    risk = risk_of(data(seed=4), loss=loss)
    first = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.05))
    again = DualCoordinate(tolerance=1e-6).minimize(risk, L2(0.05), start=first.w, slope=first.details["slope"])
    assert again.status is Status.CONVERGED
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.05, seed=0, start=first.details["slope"])
    assert plane_bound(L2(0.05), *ascent.plane(), 0.0) > 0.5 * first.objective


@pytest.mark.parametrize(("loss", "of_rows"), [("chain_margin", "multiclass_hinge"), ("chain_crf", "softmax")])
def test_sentences_of_one_token_are_rows(loss, of_rows):
    examples = data(lengths=(1,) * 40)
    rows = Dataset.from_arrays(examples.X, examples.targets.y)
    chain = DualCoordinate(tolerance=1e-9).minimize(risk_of(examples, loss=loss), L2(0.02))
    classes = DualCoordinate(tolerance=1e-9).minimize(LinearRisk(rows, LOSSES.make(of_rows)), L2(0.02))
    assert chain.objective == pytest.approx(classes.objective, rel=1e-8)
    np.testing.assert_allclose(chain.w[: classes.w.size], classes.w, atol=1e-3)


def test_errors_as_factors_have_no_dual_steps():
    risk = LinearRisk(data(), LOSSES.make("chain_scaled_margin"))
    assert ability(risk, DualBlocks) is None
    with pytest.raises(IncompatibleError, match="mean over rows"):
        DualCoordinate().minimize(risk, L2(0.1))


@both
def test_a_free_intercept_is_left_to_others(loss):
    risk = risk_of(data(), loss=loss)
    assert ability(FreeIntercept(risk), DualBlocks) is None
    with pytest.raises(IncompatibleError, match=r"groups.*line_search_bundle or lbfgs"):
        ability(risk, DualBlocks).ascent(0.0, 0.1, seed=0, intercept=True)


def test_a_shift_that_would_make_sparse_rows_dense_and_too_long_sentences_leave_it_to_the_bundle(monkeypatch):
    assert ability(risk_of(data(csr_array), columns=SCALED), DualBlocks) is None
    monkeypatch.setattr(dual_groups, "MOST_PRODUCTS", 100)
    risk = risk_of(data())
    assert ability(risk, DualBlocks) is None
    assert Auto(tolerance=1e-4).minimize(risk, L2(0.05)).status is Status.CONVERGED


def test_auto_begins_with_it_where_dual_steps_are_all_that_is_known():
    found = Auto(tolerance=1e-6).minimize(risk_of(data()), ElasticNet(0.05, 0.3))
    assert found.status is Status.CONVERGED
    assert found.solver.startswith("dual_coordinate")
    assert "dual steps, l1 and l2" in found.solver


@pytest.mark.parametrize(("lam", "gap"), [(10.0, 1e-6), (1.0, 1e-6), (0.1, 1e-6), (0.01, 1e-4), (1e-4, 0.9)])
def test_a_likelihood_rises_at_any_strength_of_the_regularizer(lam, gap):
    """Also where marginals are nearly 0 and 1, so that steps along potentials change nothing at first."""
    risk = risk_of(data(csr_array, weighted=True, lengths=(9, 30, 1, 17, 60, 3)), loss="chain_crf", bias=True)
    ours = DualCoordinate(tolerance=gap, max_iterations=3000).minimize(risk, L2(lam))
    theirs = LBFGS(tolerance=1e-8, max_iterations=3000).minimize(risk, L2(lam))
    assert ours.status is theirs.status is Status.CONVERGED
    assert ours.objective >= theirs.lower_bound * (1.0 - 1e-12)
    for line in ours.history:
        assert line.lower_bound <= theirs.objective * (1.0 + 1e-12)


def test_potentials_that_are_far_off_are_taken_back():
    """Marginals all but 0 and 1, at the wrong labels: the marginals hardly change for a while."""
    risk = risk_of(data(seed=5), loss="chain_crf")
    f = 300.0 * np.random.default_rng(5).normal(size=ability(risk, Scored).map.matvec(np.zeros(risk.dim)).shape)
    ascent = ability(risk, DualBlocks).ascent(0.0, 0.1, seed=0, near=f)
    for _ in range(300):
        ascent.sweep()
    least = LBFGS(tolerance=1e-9).minimize(risk, L2(0.1))
    assert plane_bound(L2(0.1), *ascent.plane(), -np.inf) == pytest.approx(least.objective, rel=1e-5)
