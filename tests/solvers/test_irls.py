"""Truncated-CG IRLS against a dense implementation of Komarek's Algorithms 5 to 7, and the effect of each option."""

import numpy as np
import pytest
from scipy.special import expit

from bmrm.app.config.config import load_settings
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Scored, Status
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.irls import IRLS
from bmrm.solvers.newton import Newton
from tests import problems

M, D = 80, 6
RIDGE = 2.0
"""The thesis' rrlambda."""


def binary_data(seed=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(M, D)) * np.array([1.0, 2.0, 0.3, 1.0, 0.5, 1.5])
    y = (X @ random.normal(size=D) + random.normal(size=M) > 0.4).astype(float)
    return X, y


def risk_of(X, y, loss="logistic", bias=False, **parameters):
    return LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss, parameters), bias=bias)


# -- the thesis, dense and literal: not normalised, residuals computed anew, no shared code -----------------------


def deviance(X, y, beta, options):
    o = np.where(y > 0, 1.0 - options["margin"], options["margin"])
    f = X @ beta
    if (options["modelmin"], options["modelmax"]) == (0.0, 1.0):
        return 2.0 * (o * np.logaddexp(0.0, -f) + (1.0 - o) * np.logaddexp(0.0, f)).sum()
    mu = np.clip(expit(f), options["modelmin"], options["modelmax"])
    return -2.0 * (o * np.log(mu) + (1.0 - o) * np.log(1.0 - mu)).sum()


def scale_of_cgeps(X, y, options):
    """M, its square root, or the norm of r_0 = X'(y - 1/2), which CG begins with where beta is 0 (section 5.2.2)."""
    scales = {"attributes": X.shape[1], "root_attributes": X.shape[1] ** 0.5}
    return scales.get(options["cgscale"]) or np.linalg.norm(X.T @ (y - 0.5))


def conjugate_gradients(A, b, beta_old, dev, options, scale):
    by_deviance = options["cgdeveps"] > 0
    x = beta_old.copy() if options["cgbinit"] else np.zeros_like(b)
    r0 = r = b - A @ x
    points, devs, previous, d = [x], [dev(x)], r, r
    best, window, count = np.inf, options["cgwindow"], 0
    for i in range(options["cgmax"]):
        if by_deviance and i > 0 and abs((devs[-2] - devs[-1]) / devs[-1]) < options["cgdeveps"]:
            break
        if not by_deviance and best < options["cgeps"] * scale:
            break
        if window <= 0:
            break
        gamma = (r @ r) / (previous @ previous) if i > 0 else 0.0
        d = r + gamma * d
        alpha = -(d @ r0) / (d @ (A @ d))
        x = x - alpha * d
        previous, r = r, b - A @ x
        points.append(x)
        devs.append(dev(x))
        count += 1
        measure = devs[-1] if by_deviance else np.linalg.norm(r)
        if measure <= best:
            window, best = options["cgwindow"], measure
        else:
            window -= 1
        if devs[-1] > options["cgdecay"] * min(devs[:-1]):
            return points[int(np.argmin(devs))], count
    return (points[int(np.argmin(devs))] if by_deviance else x), count


def komarek(X, y, options, steps, start=None):
    beta = np.zeros(X.shape[1]) if start is None else start
    betas, devs, counts = [beta], [deviance(X, y, beta, options)], []
    scale = scale_of_cgeps(X, y, options)
    for _ in range(steps):
        mu = np.clip(expit(X @ beta), options["modelmin"], options["modelmax"])
        w = np.clip(mu * (1.0 - mu), options["wmargin"], 1.0 - options["wmargin"])
        o = np.where(y > 0, 1.0 - options["margin"], options["margin"])
        z = X @ beta + (o - mu) / w
        A = X.T @ np.diag(w) @ X + RIDGE * np.eye(X.shape[1])
        beta, count = conjugate_gradients(A, X.T @ (w * z), beta, lambda v: deviance(X, y, v, options), options, scale)
        betas.append(beta)
        counts.append(count)
        devs.append(deviance(X, y, beta, options))
        if abs((devs[-2] - devs[-1]) / devs[-1]) < options["lreps"]:
            break
    return betas, np.array(devs), counts


THESIS = {
    "cgdecay": 1000.0,
    "cgmax": 200,
    "cgwindow": 3,
    "lreps": 1e-10,
    "margin": 0.0,
    "modelmin": 0.0,
    "modelmax": 1.0,
    "wmargin": 0.0,
    "cgscale": "attributes",
}
EPS = THESIS | {"cgeps": 1e-3, "cgdeveps": 0.0, "cgbinit": False}
FIRST = EPS | {"cgscale": "first_residual"}
DEVEPS = THESIS | {"cgeps": 0.0, "cgdeveps": 5e-3, "cgbinit": True}


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("first_residual", FIRST),
        ("first_residual", FIRST | {"cgeps": 0.05}),
        ("first_residual", FIRST | {"cgscale": "root_attributes", "cgeps": 0.2}),
        ("afc", EPS),
        ("afc", EPS | {"cgeps": 0.1}),
        ("afc", EPS | {"cgmax": 2}),
        ("afc", EPS | {"cgbinit": True}),
        ("afc", EPS | {"wmargin": 0.1}),
        ("afc", EPS | {"margin": 0.05, "modelmin": 0.02, "modelmax": 0.97}),
        ("cgdeveps", DEVEPS),
        ("cgdeveps", DEVEPS | {"cgdeveps": 0.05}),
        ("cgdeveps", DEVEPS | {"cgbinit": False, "cgwindow": 1}),
        ("cgdeveps", DEVEPS | {"cgdeveps": 1e-3, "cgbinit": False, "cgdecay": 1.0}),
        ("afc", EPS | {"cgdecay": 1.0}),
    ],
)
def test_iterates_are_those_of_the_thesis(preset, options):
    X, y = binary_data()
    betas, devs, counts = komarek(X, y, options, 6)
    assert len(betas) > 3
    for steps in range(1, len(betas)):
        solver = IRLS(preset=preset, tolerance=0.0, lrmax=steps, **options)
        solution = solver.minimize(risk_of(X, y), L2(RIDGE / M))
        np.testing.assert_allclose(solution.details["deviance"], devs[: steps + 1], rtol=1e-10)
        best = betas[int(np.argmin(devs[: steps + 1]))]
        np.testing.assert_allclose(solution.w, best, rtol=0.0, atol=1e-10 * max(1.0, np.abs(best).max()))
        assert list(solution.details["cg_iterations"]) == counts[:steps]


def test_presets_are_the_thesis_defaults():
    X, y = binary_data()
    X /= X.std(axis=0)  # CG has other lengths by other scales then
    seen = {}
    for preset, options in {"first_residual": FIRST, "afc": EPS, "cgdeveps": DEVEPS}.items():
        betas, devs, counts = komarek(X, y, options | {"lreps": 0.05}, 30)
        solution = IRLS(preset=preset, tolerance=0.0).minimize(risk_of(X, y), L2(RIDGE / M))
        assert solution.status is Status.OWN_RULE
        assert "lreps" in solution.solver
        assert solution.iterations == len(betas) - 1
        np.testing.assert_allclose(solution.w, betas[int(np.argmin(devs))], atol=1e-10)
        assert list(solution.details["cg_iterations"]) == counts
        assert solution.lower_bound > 0.0
        seen[preset] = counts
    assert sum(seen["first_residual"]) < sum(seen["afc"])


def test_old_presets_are_refused_by_name(tmp_path):
    expected = "preset is 'cgeps', expected one of .*; 'cgeps' is now afc, and first_residual is the one of .*chapter 6"
    with pytest.raises(InputError, match=expected):
        IRLS(preset="cgeps")
    (tmp_path / "a.yaml").write_text("data: {train: a.svm}\nsolver: {name: irls, preset: cgeps}\n")
    with pytest.raises(InputError, match=f"a.yaml, line 2: solver.{expected}"):
        load_settings(tmp_path / "a.yaml")
    with pytest.raises(InputError, match=r"expected one of certified, first_residual, afc, cgdeveps$"):
        IRLS(preset="cgdevps")


def test_the_fixed_point_is_the_optimum_with_lam_equal_to_ridge_over_m():
    """Their weighted least squares with rrlambda beta'beta minimises sum of losses + rrlambda / 2 beta'beta."""
    X, y = binary_data()
    betas, _, _ = komarek(X, y, EPS | {"cgeps": 1e-12, "lreps": 0.0}, 30)
    optimum = problems.logistic_l2_optimum(X, 2.0 * y - 1.0, RIDGE / M)
    solution = IRLS(tolerance=1e-12).minimize(risk_of(X, y), L2(RIDGE / M))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(optimum, rel=1e-12)
    np.testing.assert_allclose(solution.w, betas[-1], atol=1e-6)


def test_binitmean_starts_with_the_mean_outcome_as_offset():
    X, y = binary_data()
    plain = IRLS(max_iterations=1).minimize(risk_of(X, y, bias=True), L2(RIDGE / M))
    solution = IRLS(binitmean=True, max_iterations=1).minimize(risk_of(X, y, bias=True), L2(RIDGE / M))
    start = np.zeros(D + 1)
    start[-1] = y.mean()
    value = risk_of(X, y, bias=True).value_and_subgradient(start)[0] + L2(RIDGE / M).value(start)
    assert solution.history[0].objective == pytest.approx(value, rel=1e-14)
    assert plain.history[0].objective == pytest.approx(np.log(2.0))
    with pytest.raises(IncompatibleError, match="constant feature"):
        IRLS(binitmean=True).minimize(risk_of(X, y), L2(1.0))


def test_a_smaller_deviance_is_returned_even_at_a_larger_objective():
    """The best-deviance iterate (line 5.2) ignores the penalty, ours does not."""
    X, y = binary_data()
    runs = {
        returns: IRLS(preset="afc", tolerance=0.0, lreps=1e-9, returns=returns).minimize(risk_of(X, y), L2(0.5))
        for returns in ("deviance", "objective")
    }
    value = {name: 2.0 * M * risk_of(X, y).value_and_subgradient(run.w)[0] for name, run in runs.items()}
    assert value["deviance"] == pytest.approx(runs["deviance"].details["deviance"].min(), rel=1e-12)
    assert value["deviance"] <= value["objective"]
    assert runs["objective"].objective <= runs["deviance"].objective
    for run in runs.values():
        recomputed = risk_of(X, y).value_and_subgradient(run.w)[0] + L2(0.5).value(run.w)
        assert run.objective == pytest.approx(recomputed, rel=1e-13)


def test_held_out_rows_decide():
    X, y = binary_data()
    options = {"preset": "afc", "tolerance": 0.0, "lreps": 1e-6, "holdout_size": 0.25}
    solution = IRLS(seed=5, **options).minimize(risk_of(X, y), L2(1e-3))
    rows = np.random.default_rng(5).permutation(M)
    held, kept = np.sort(rows[:20]), np.sort(rows[20:])
    reference = IRLS(preset="afc", tolerance=0.0, lreps=1e-12, lrmax=solution.iterations)
    # dim / rows scales cgeps; both count all rows there, so the same CG accuracy needs this factor
    fitted = reference.minimize(risk_of(X[kept], y[kept]), L2(1e-3))
    assert solution.details["deviance"][0] == pytest.approx(2.0 * M * np.log(2.0))
    held_risk = risk_of(X[held], y[held])
    chosen = 2.0 * M * held_risk.value_and_subgradient(solution.w)[0]
    assert chosen == pytest.approx(solution.details["deviance"].min(), rel=1e-10)
    assert fitted.details["deviance"].min() < 2.0 * 60 * np.log(2.0)
    other = IRLS(seed=6, **options).minimize(risk_of(X, y), L2(1e-3))
    assert not np.array_equal(other.w, solution.w)
    again = IRLS(seed=5, **options).minimize(risk_of(X, y), L2(1e-3))
    np.testing.assert_array_equal(again.w, solution.w)
    with pytest.raises(InputError, match="holdout_size"):
        IRLS(holdout_size=0.001).minimize(risk_of(X, y), L2(1e-3))


@pytest.mark.parametrize(("preset", "options"), [("afc", EPS | {"cgeps": 0.05}), ("cgdeveps", DEVEPS)])
def test_cgdecay_ends_cg_where_newton_overshoots(preset, options):
    X, y = binary_data()
    far = np.full(D, 4.0)
    for decay in (1.0, 1000.0):
        changed = options | {"cgbinit": True, "cgdecay": decay}
        _, devs, counts = komarek(X, y, changed, 1, far)
        solver = IRLS(preset=preset, tolerance=0.0, lrmax=1, **changed)
        solution = solver.minimize(risk_of(X, y), L2(RIDGE / M), start=far)
        np.testing.assert_allclose(solution.details["deviance"], devs, rtol=1e-7)
        assert list(solution.details["cg_iterations"]) == counts
        if decay == 1.0:
            few = counts[0]
    assert few < counts[0]


def test_lrdevdone_and_lrmax_end_the_run():
    X, y = binary_data()
    done = IRLS(preset="afc", tolerance=0.0, lrdevdone=100.0).minimize(risk_of(X, y), L2(RIDGE / M))
    assert done.status is Status.OWN_RULE
    assert "lrdevdone" in done.solver
    assert done.details["deviance"][-1] < 100.0 <= done.details["deviance"][-2]
    limited = IRLS(preset="afc", tolerance=0.0, lreps=1e-12, lrmax=2).minimize(risk_of(X, y), L2(RIDGE / M))
    assert limited.status is Status.ITERATION_LIMIT
    assert limited.iterations == 2


def test_deviances_below_0_end_nothing_by_themselves():
    """The Poisson loss exp(f) - y f has no infimum 0: many events make it negative."""
    X, _ = binary_data()
    y = np.random.default_rng(0).poisson(np.exp(3.0 + 0.1 * X[:, 0])).astype(float)
    solution = IRLS(tolerance=1e-9).minimize(risk_of(X, y, "poisson", bias=True), L2(1e-3))
    newton = Newton(tolerance=1e-9).minimize(risk_of(X, y, "poisson", bias=True), L2(1e-3))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(newton.objective, rel=1e-8)
    assert solution.objective < -10.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [360.0, 430.0])
def test_residuals_whose_squares_overflow_are_solved_for(far):
    """From exp(far) down, by about 1 of the exponent in each iteration, as Newton's method does there."""
    risk = risk_of(np.ones((3, 1)), np.ones(3), "poisson")
    solution = IRLS(max_iterations=20).minimize(risk, L2(1e-3), start=np.array([far]))
    assert solution.w[0] == pytest.approx(far - 20.0, abs=1.5)


@pytest.mark.parametrize("scale", ["attributes", "root_attributes", "first_residual", "residual"])
def test_scales_of_cgeps(scale):
    X, y = binary_data()
    loose, tight = (
        IRLS(preset="afc", tolerance=0.0, cgeps=cgeps, cgscale=scale).minimize(risk_of(X, y), L2(RIDGE / M))
        for cgeps in (0.5, 1e-8)
    )
    assert sum(loose.details["cg_iterations"]) < sum(tight.details["cg_iterations"])


def test_jacobi_saves_iterations_on_badly_scaled_features():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 20)), random.integers(0, 2, 200)
    X *= np.logspace(-2.0, 2.0, 20)
    counts, objectives = {}, {}
    for jacobi in (False, True):
        for bias in (False, True):
            solver = IRLS(tolerance=1e-9, jacobi=jacobi, cgmax=5000)
            solution = solver.minimize(risk_of(X, y, bias=bias), L2(1e-3))
            assert solution.status is Status.CONVERGED
            counts[jacobi, bias] = sum(solution.details["cg_iterations"])
            objectives[jacobi, bias] = solution.objective
    assert counts[True, False] < 0.5 * counts[False, False]
    for bias in (False, True):
        assert objectives[True, bias] == pytest.approx(objectives[False, bias], rel=1e-8)
    labels = random.integers(0, 3, 200)
    with pytest.raises(IncompatibleError, match="one score per row"):
        IRLS(jacobi=True).minimize(risk_of(X, labels, "softmax"), L2(1e-2))


def test_the_diagonal_is_that_of_the_matrix():
    from scipy.sparse import csr_array

    from bmrm.risk.products import Columns

    random = np.random.default_rng(1)
    X = random.normal(size=(50, 7)) * (random.random((50, 7)) < 0.5)
    weights = random.random(50)
    columns = Columns(scale=random.random(7) + 0.5, shift=random.normal(size=7))
    for data in (X, csr_array(X), X.astype(np.float32), csr_array((X != 0.0).astype(float))):
        dense = np.asarray(data.todense() if hasattr(data, "todense") else data, np.float64)
        for chosen in (Columns(), columns):
            shift = 0.0 if chosen.shift is None else chosen.shift
            scaled = (dense - shift) * (1.0 if chosen.scale is None else chosen.scale)
            table = np.column_stack((scaled, np.ones(50)))
            risk = LinearRisk(
                Dataset.from_arrays(data, random.integers(0, 2, 50)), LOSSES.make("logistic"), bias=True, columns=chosen
            )
            np.testing.assert_allclose(risk.map.diagonal(weights), weights @ table**2, rtol=1e-6)


def test_the_diagonal_of_shifted_features_does_not_cancel():
    from scipy.sparse import csr_array

    from bmrm.risk.products import Columns

    random = np.random.default_rng(1)
    X = 1e7 + random.normal(size=(50, 3)) * [1e-3, 1.0, 0.0]
    weights = random.random(50)
    columns = Columns(shift=X.mean(axis=0))
    expected = weights @ (X - columns.shift) ** 2
    for data in (X, csr_array(X)):
        found = LinearRisk(Dataset.from_arrays(data, np.arange(50) % 2), LOSSES.make("logistic"), columns=columns)
        diagonal = found.map.diagonal(weights)
        assert np.all(diagonal >= 0.0)
        np.testing.assert_allclose(diagonal, expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "least_squares", "softmax", "huber_hinge", "poisson"])
def test_any_smooth_loss_with_curvature_works(loss):
    random = np.random.default_rng(2)
    X = random.normal(size=(70, 5))
    f = X @ random.normal(size=(5, 3))
    y = {"softmax": f.argmax(axis=1), "least_squares": f[:, 0], "poisson": random.poisson(1.0, 70)}
    risk = risk_of(X, y.get(loss, (f[:, 0] > 0.3).astype(int)), loss)
    from bmrm.solvers.lbfgs import LBFGS

    if not risk.ability(Scored).phi.facts.smooth:
        pytest.fail(f"{loss} is not smooth")
    solution = IRLS(tolerance=1e-9).minimize(risk, L2(0.01))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(LBFGS(tolerance=1e-9).minimize(risk, L2(0.01)).objective, rel=1e-8)


def test_halving_rescues_where_newton_overshoots():
    X, y = binary_data()
    risk, far = risk_of(X, y), np.full(D, 30.0)
    wild = IRLS(tolerance=1e-8, halving=False, max_iterations=8).minimize(risk, L2(1e-3), start=far)
    tame = IRLS(tolerance=1e-8).minimize(risk, L2(1e-3), start=far)
    assert tame.status is Status.CONVERGED
    assert wild.status is not Status.CONVERGED


def test_what_cannot_be_served_is_refused():
    X, y = binary_data()
    with pytest.raises(IncompatibleError, match="second derivative"):
        IRLS().minimize(risk_of(X, y), L1(0.1))
    with pytest.raises(IncompatibleError, match="smooth loss"):
        IRLS().minimize(risk_of(X, y, "hinge"), L2(0.1))
    with pytest.raises(IncompatibleError, match="cannot be changed by margin"):
        IRLS(margin=0.1).minimize(risk_of(X, y, "squared_hinge"), L2(0.1))
    with pytest.raises(IncompatibleError, match="cannot serve margin"):
        IRLS(margin=0.1).minimize(problems.ScoredRisk(X, y, "logistic"), L2(0.1))
    with pytest.raises(InputError, match="both positive"):
        IRLS(cgeps=0.1, cgdeveps=0.1)
    with pytest.raises(InputError, match="both 0"):
        IRLS(cgeps=0.0)
    with pytest.raises(InputError, match="modelmin"):
        IRLS(modelmin=0.5, modelmax=0.5)
