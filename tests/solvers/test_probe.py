"""PROBE against its pseudo-code, a case worked out by hand, and its dormant rows."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Start, Status
from bmrm.problem.abilities import RowSubsets
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.probe import Cycles, Probe
from tests import problems

LAM = 0.05


class NoPenalty:
    """Omega = 0."""

    smooth = True

    def value(self, w):
        return 0.0

    def subgradient(self, w):
        return np.zeros_like(w)


class Absolute:
    """R(w) = |w - 1| + 1, by hand."""

    dim, infimum = 1, 0.0

    def value_and_subgradient(self, w):
        return abs(w[0] - 1.0) + 1.0, np.array([1.0 if w[0] >= 1.0 else -1.0])


def test_a_case_worked_out_by_hand():
    """gamma = 1/2, ccf = 1, from w = 3; J = |w - 1| + 1.

    t=1: w=3, J=3, f_min=3, phi=1/2: step 3 - 1/2 3 = 1.5, to w = 1.5.
    t=2: J=1.5, f_min=1.5: step 1.5 - 1/2 1.5 = 0.75, to w = 0.75.
    t=3: J=1.25, f_min=1.25: g=-1, step 0.625, to w = 1.375.
    t=4: J=1.375 has risen: the normal cycle ends, f_min=1.25 is new since its start: it stays normal, phi=1/2.
         Step 1.375 - 0.625 = 0.75, to w = 0.625.
    t=5: J=1.375 has not risen. Step 0.75, to w = 1.375.
    t=6: J=1.375, no rise; w = 0.625, and so on for ever: the values are exact, no cycle ends.
    """
    run = Probe(gamma=0.5, ccf=1, tolerance=0.0, max_iterations=5).minimize(Absolute(), NoPenalty(), start=[3.0])
    np.testing.assert_array_equal(run.details["value"], [3.0, 1.5, 1.25, 1.375, 1.375, 1.375])
    np.testing.assert_array_equal(run.details["phi"], 0.5)
    np.testing.assert_array_equal(run.details["cycle"], 0)
    assert run.objective == 1.25
    assert run.w[0] == 0.75


def test_cycles_worked_out_by_hand():
    """Every kind of end: (rose, f_min) -> (phi, kind) with gamma = 1/2, ccf = 2."""
    script = [
        # normal cycle with a new minimum: phi stays
        ((False, 10.0), (0.5, 0)),
        ((True, 10.0), (0.5, 0)),
        ((True, 10.0), (0.5, 0)),
        # normal cycle without: test with phi / 2
        ((True, 10.0), (0.5, 0)),
        ((True, 10.0), (0.25, 1)),
        # test cycle of 4 steps brings 4: 1 a step; then retest with the old phi
        ((False, 8.0), (0.25, 1)),
        ((True, 8.0), (0.25, 1)),
        ((False, 6.0), (0.25, 1)),
        ((True, 6.0), (0.5, 2)),
        # retest cycle of 2 steps brings 3: 1.5 a step, better than the test: phi stays
        ((True, 3.0), (0.5, 2)),
        ((True, 3.0), (0.5, 0)),
        # normal without progress, test with 0.5 a step, retest with 0.25 a step: phi / 2 for good
        ((True, 3.0), (0.5, 0)),
        ((True, 3.0), (0.25, 1)),
        ((True, 2.0), (0.25, 1)),
        ((True, 2.0), (0.5, 2)),
        ((True, 1.5), (0.5, 2)),
        ((True, 1.5), (0.25, 0)),
    ]
    cycles = Cycles(0.5, 2)
    for k, ((rose, least), (phi, kind)) in enumerate(script):
        cycles.step(rose, least)
        assert (cycles.phi, cycles.kind) == (phi, kind), k


def pseudo_code(objective, w, gamma, upticks, epsilon, most):
    """Algorithm 1 line by line, after the paper's variables."""
    f_min, f_before, ccf, iterations, kind, phi, last = 1e100, 1e100, 0, 0, "normal", gamma, 1e100
    trace, w_min = [], w
    for _ in range(most):
        iterations += 1
        f, g = objective(w)
        if f > f_before:
            ccf += 1
        if f < f_min:
            f_min, w_min = f, w
        if ccf == upticks:
            average = (last - f_min) / iterations
            if kind == "normal":
                if f_min == last:
                    phi, kind = gamma * phi, "test"
            elif kind == "test":
                phi, last_average, kind = phi / gamma, average, "retest"
            else:
                if average <= last_average:
                    phi = gamma * phi
                kind = "normal"
            ccf, iterations, last = 0, 0, f_min
        trace.append((f, phi, ("normal", "test", "retest").index(kind)))
        if phi < epsilon:
            break
        f_before = f
        w = w - (f - (1.0 - phi) * f_min) / (g @ g) * g
    return np.array(trace), f_min, w_min


@pytest.mark.parametrize("kind", ["hinge", "logistic", "least_squares"])
@pytest.mark.parametrize(("gamma", "upticks", "epsilon"), [(2.0 / 3.0, 2, 0.05), (0.5, 1, 0.1), (0.8, 3, 0.3)])
def test_every_step_is_that_of_the_pseudo_code(kind, gamma, upticks, epsilon):
    risk = problems.PlainRisk(*problems.data(kind), kind)

    def objective(w):
        value, a = risk.value_and_subgradient(w)
        return value + L2(LAM).value(w), a + L2(LAM).subgradient(w)

    trace, f_min, w_min = pseudo_code(objective, np.zeros(7), gamma, upticks, epsilon, 100000)
    solution = Probe(gamma=gamma, ccf=upticks, epsilon=epsilon, tolerance=0.0).minimize(risk, L2(LAM))
    assert solution.status is Status.OWN_RULE
    assert "epsilon" in solution.solver
    for column, name in enumerate(("value", "phi", "cycle")):
        np.testing.assert_array_equal(solution.details[name], trace[:, column], err_msg=name)
    assert solution.objective == f_min
    np.testing.assert_array_equal(solution.w, w_min)
    assert set(trace[:, 2]) == {0.0, 1.0, 2.0} or epsilon > 0.2
    assert solution.lower_bound <= getattr(problems, f"{kind}_l2_optimum")(risk.X, risk.y, LAM)


def linear_risk(seed=0, rows=400, loss="hinge", **parameters):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 12)) * (random.random((rows, 12)) < 0.6)
    y = np.where(X @ random.normal(size=12) + 0.3 * random.normal(size=rows) > 0.0, 1, -1)
    return X, y, LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss, parameters))


def test_rows_become_dormant_and_are_tried_again():
    X, y, risk = linear_risk()
    random = np.random.default_rng(5)
    active_set = risk.ability(RowSubsets).active_set(10, 5, 15, 7)
    quiet, due, left = np.zeros(400, int), np.zeros(400, int), []
    lengths = set()
    for step in range(1, 120):
        w = random.normal(size=12) * 0.05 + np.linspace(-1.0, 1.0, 12)
        evaluated = due <= step
        value, gradient, share = active_set.step(w)
        short = np.maximum(0.0, 1.0 - y * (X @ w))
        assert value == pytest.approx(short[evaluated].sum() / 400, rel=1e-12)
        np.testing.assert_allclose(gradient, -(y * (short > 0))[evaluated] @ X[evaluated] / 400, atol=1e-14)
        assert share == evaluated.mean()
        if step % 13 == 0:
            more, extra = active_set.rest(w)
            assert value + more == pytest.approx(short.mean(), rel=1e-12)
            np.testing.assert_allclose(gradient + extra, -(y * (short > 0)) @ X / 400, atol=1e-14)
        # the state of the active set, followed from the rules
        now = active_set._tried_at
        tried, calm = evaluated & (due > 0), evaluated & (short == 0.0)
        quiet = np.where(evaluated & (short > 0.0), 0, quiet + calm)
        falls = calm & (tried | (quiet >= 10))
        woken = ~evaluated & (short > 0.0) if step % 13 == 0 else np.zeros(400, bool)
        np.testing.assert_array_equal(now[falls] > step, True)
        lengths |= set((now[falls] - step - 1).tolist())
        np.testing.assert_array_equal(now[evaluated & ~falls], 0)
        np.testing.assert_array_equal(now[woken], 0)
        quiet[woken] = 0
        due = now.copy()
        left.append(share)
    assert lengths == set(range(5, 16))
    assert min(left) < 0.7


def test_the_reported_objective_is_true_though_rows_sleep():
    X, y, risk = linear_risk()
    dormant = Probe(tolerance=0.0).minimize(risk, L2(1e-3))
    active = Probe(tolerance=0.0, dormant=False).minimize(risk, L2(1e-3))
    assert dormant.details["active"].min() < 0.7
    assert np.all(active.details["active"] == 1.0)
    assert dormant.passes < dormant.iterations
    for solution in (dormant, active):
        value = np.maximum(0.0, 1.0 - y * (X @ solution.w)).mean() + L2(1e-3).value(solution.w)
        assert solution.objective == pytest.approx(value, rel=1e-12)
    assert dormant.objective == pytest.approx(active.objective, rel=0.03)
    claims = dormant.details["value"] < np.minimum.accumulate(np.append(np.inf, dormant.details["value"][:-1]))
    assert np.all(dormant.details["active"][claims] == 1.0)


def test_a_partial_minimum_is_checked_once_at_the_end():
    """As in the paper: dormant rows are left out of f_min; the point returned is evaluated on all rows."""
    X, y, risk = linear_risk()
    lines = []
    options = {"tolerance": 0.0, "dormant": True}
    run = Probe(minimum="partial", **options).minimize(risk, L2(1e-3), callback=lambda line: lines.append(line))
    exact = Probe(minimum="exact", **options).minimize(risk, L2(1e-3))
    active, values = run.details["active"], run.details["value"]
    assert run.passes == pytest.approx(active.sum() + 1.0)
    assert active.min() < 0.7
    assert active.mean() < exact.details["active"].mean()
    first = np.argmax(active < 1.0)
    assert np.argmin(values) > first
    np.testing.assert_array_equal(run.w, lines[np.argmin(values)].iterate)
    value = np.maximum(0.0, 1.0 - y * (X @ run.w)).mean() + L2(1e-3).value(run.w)
    assert run.objective == pytest.approx(value, rel=1e-12)
    assert run.objective == pytest.approx(exact.objective, rel=0.03)
    regularizer, iterates = L2(1e-3), [line.iterate for line in lines]
    whole = np.array([np.maximum(0.0, 1.0 - y * (X @ w)).mean() + regularizer.value(w) for w in iterates])
    assert np.all(values <= whole * (1.0 + 1e-12))
    assert np.any(values < whole * (1.0 - 1e-6))  # dormant rows are left out
    assert run.lower_bound <= exact.objective
    # the pseudo-code on the values that were seen
    trace, f_before, f_min, cycles = [], 1e100, 1e100, Cycles(2.0 / 3.0, 2)
    for value in values:
        f_min = min(f_min, value)
        cycles.step(value > f_before, f_min)
        trace.append(cycles.phi)
        f_before = value
    np.testing.assert_array_equal(run.details["phi"], trace)


def test_a_partial_minimum_that_proves_worse_is_not_returned():
    """The row that decides is dormant when w moves far to where its loss is large."""
    dim = 1

    class Forgetful(Absolute):
        def ability(self, kind):
            return self if kind is RowSubsets else None

        def active_set(self, *arguments):
            return self

        steps = 0

        def step(self, w):
            self.steps += 1
            return (*self.value_and_subgradient(w), 1.0) if self.steps == 1 else (0.5 / self.steps, np.ones(dim), 0.5)

    run = Probe(minimum="partial", dormant=True, tolerance=0.0, max_iterations=4).minimize(
        Forgetful(), NoPenalty(), start=[1.5]
    )
    assert run.details["value"].min() < 0.2
    np.testing.assert_array_equal(run.w, [1.5])
    assert run.objective == 1.5


def test_resuming_checks_the_partial_minimum():
    _, _, risk = linear_risk()
    kept = []
    solver = Probe(minimum="partial", dormant=True, tolerance=0.0, max_iterations=60)
    solver.minimize(risk, L2(1e-3), callback=lambda line: kept.append((line, dict(line.state()))))
    line, state = kept[-1]
    start = Start(line.w, line.lower_bound, (), state)
    lowest = risk.value_and_subgradient(state["lowest"])[0] + L2(1e-3).value(state["lowest"])
    assert lowest < line.objective
    resumed = Probe(minimum="partial", dormant=True, tolerance=0.0, max_iterations=1).minimize(
        risk, L2(1e-3), start=start
    )
    assert resumed.objective <= lowest


def test_callbacks_get_the_iterate_beside_the_best_point():
    """Figure 3 of the paper is of w_t."""
    lines = []
    Probe(gamma=0.5, ccf=1, tolerance=0.0, max_iterations=4).minimize(
        Absolute(), NoPenalty(), start=[3.0], callback=lambda line: lines.append((line.iterate[0], line.w[0]))
    )
    assert lines == [(3.0, 3.0), (1.5, 1.5), (0.75, 0.75), (1.375, 0.75), (0.625, 0.75)]


@pytest.mark.parametrize("store", [csr_matrix, np.asarray])
def test_dormant_rows_are_not_paid_for_by_copies_of_the_others(store):
    """Memory of steps that leave rows out: a few numbers a row, not its entries."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 300))
    y = np.where(X[:, 0] + 0.1 * random.normal(size=2000) > 0.0, 1, -1)
    risk = LinearRisk(Dataset.from_arrays(store(X), y), LOSSES.make("hinge"))
    active_set = risk.ability(RowSubsets).active_set(2, 5, 15, 0)
    w, shares = np.eye(1, 300)[0] * 2.0, []
    active_set.step(w)
    tracemalloc.start()
    try:
        for _ in range(12):
            shares.append(active_set.step(w)[2])
            active_set.rest(w)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert min(shares) < 0.8
    assert peak < 0.1 * X.nbytes


def test_seeds_of_the_sleep():
    _, _, risk = linear_risk()
    first, again, other = (Probe(tolerance=0.0, seed=s).minimize(risk, L2(1e-3)).w for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_diagnostics_run_the_idealised_algorithms():
    risk = problems.ScoredRisk(*problems.data("hinge"), "hinge")
    from bmrm.solvers.bundle import Bundle

    reference = Bundle(tolerance=1e-9).minimize(risk, L2(LAM)).w
    solution = Probe(tolerance=0.0, diagnostics={"reference": tuple(reference)}).minimize(risk, L2(LAM))
    details = solution.details
    steps = solution.iterations + 1
    best = problems.hinge_l2_optimum(risk.X, risk.y, LAM)
    for name in ("distance", "probe_star_distance", "probe_star_value", "ideal_distance", "ideal_value"):
        assert details[name].shape == (steps,)
    assert details["distance"][0] == pytest.approx(np.linalg.norm(reference))
    for name in ("probe_star", "ideal"):
        moves = np.diff(details[f"{name}_distance"])
        assert moves.max() <= 1e-9, name  # Fejer monotone: figure 1
        assert np.all(details[f"{name}_value"] >= best * (1.0 - 1e-6))
    # the first step of IDEAL ends where the line comes nearest to the reference
    g = risk.value_and_subgradient(np.zeros(7))[1]
    nearest = np.sqrt(reference @ reference - (g @ reference) ** 2 / (g @ g))
    assert details["ideal_distance"][1] == pytest.approx(nearest, rel=1e-9)
    assert np.any(np.diff(details["distance"]) > 0.0)
    with pytest.raises(InputError, match="reference has shape"):
        Probe(diagnostics={"reference": (1.0,)}).minimize(risk, L2(LAM))
    with pytest.raises(InputError, match="expected reference"):
        Probe(diagnostics={"w": (1.0,)})


def test_an_unknown_infimum_is_refused_and_a_shifted_one_used():
    risk = problems.PlainRisk(*problems.data("hinge"), "hinge")
    plain = Probe(tolerance=0.0).minimize(risk, L2(LAM))
    shifted = problems.PlainRisk(*problems.data("hinge"), "hinge", infimum=-3.0)
    shifted.value_and_subgradient = lambda w: (risk.value_and_subgradient(w)[0] - 3.0, risk.value_and_subgradient(w)[1])
    solution = Probe(tolerance=0.0).minimize(shifted, L2(LAM))
    assert solution.objective == pytest.approx(plain.objective - 3.0, rel=0.02)
    risk.infimum = -np.inf
    with pytest.raises(IncompatibleError, match="infimum"):
        Probe().minimize(risk, L2(LAM))
