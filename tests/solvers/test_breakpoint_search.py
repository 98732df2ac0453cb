"""Algorithm 2 of the F-measure paper (BM-ls-CS): exact search over sorted breakpoints, as here and as in the package.

The text at hand has lost the formulas; derived here. With costs c_i, scores f_i and their change d_i along the step,

    g(t) = lambda/2 ||w + t s||^2 + 1/m sum_i c_i max(0, b_i + t a_i),    b_i = 1 - y_i f_i,   a_i = -y_i d_i

has the derivative g'(t) = lambda (t ||s||^2 + <w, s>) + 1/m sum of c_i a_i over the i with b_i + t a_i > 0: a rising
line that jumps by c_i |a_i| / m at each breakpoint t_i = -b_i / a_i. Its zero is on a line ("slash area") or in a jump
("vertical area"). O(m log m) for the sort.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.losses.base import OneScoreLoss
from bmrm.losses.cost_sensitive_hinge import CostSensitiveHinge
from bmrm.numerics.line_search import minimize_along, minimum_of_pieces, total
from bmrm.problem import IncompatibleError, Targets
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core.cuts import Cuts
from bmrm.solvers.line_search_bundle import LineSearchBundle
from tests import problems


def algorithm_2(lam, w, s, b, a, c):
    """The minimiser of g over t >= 0."""
    m = len(b)
    rise = lam * (s @ s)
    active = (b > 0.0) | ((b == 0.0) & (a > 0.0))
    level = lam * (w @ s) + (c * a)[active].sum() / m
    if level >= 0.0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(a != 0.0, -b / a, -1.0)
    order = np.argsort(at)
    order = order[at[order] > 0.0]
    for i in order:
        if level + rise * at[i] >= 0.0:
            return -level / rise  # slash area
        jump = c[i] * abs(a[i]) / m
        if level + rise * at[i] + jump >= 0.0:
            return at[i]  # vertical area
        level += jump
    return -level / rise


def case(seed, rows=50, features=4):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)).round(random.integers(0, 4))
    y = np.where(np.arange(rows) % 3 == 0, 1.0, -1.0)
    lam = 10.0 ** random.uniform(-5.0, 1.0)
    w, s = random.normal(size=(2, features)) * 10.0 ** random.uniform(-2.0, 2.0, size=(2, 1))
    positive, negative = random.uniform(0.05, 2.0, size=2)
    return X, y, lam, w, s, np.where(y > 0.0, positive, negative), positive, negative


def curve(X, y, lam, w, s, c, t):
    point = w[:, None] + s[:, None] * t
    return 0.5 * lam * (point**2).sum(axis=0) + (c[:, None] * np.maximum(0.0, 1.0 - y[:, None] * (X @ point))).mean(
        axis=0
    )


@given(st.integers(0, 10**6))
def test_the_step_is_a_brute_force_minimum(seed):
    X, y, lam, w, s, c, *_ = case(seed)
    b, a = 1.0 - y * (X @ w), -y * (X @ s)
    t = algorithm_2(lam, w, s, b, a, c)
    moving = a != 0.0
    kinks = np.unique(np.append(np.maximum(-b[moving] / a[moving], 0.0), 0.0))
    middles = np.append(0.5 * (kinks[1:] + kinks[:-1]), kinks[-1] + 1.0)
    # on each piece g is a parabola: its vertex, if it lies on the piece
    inside = ((b[:, None] + a[:, None] * middles) > 0.0) * (c * a)[:, None]
    vertices = -(lam * (w @ s) + inside.mean(axis=0)) / (lam * (s @ s))
    vertices = np.clip(vertices, kinks, np.append(kinks[1:], np.inf))
    best = curve(X, y, lam, w, s, c, np.concatenate((kinks, vertices))).min()
    assert curve(X, y, lam, w, s, c, np.array([t]))[0] <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("batch", [1, 3])
@given(st.integers(0, 10**6))
def test_the_general_search_finds_the_same_minimum(batch, seed):
    X, y, lam, w, s, c, positive, negative = case(seed)
    t = algorithm_2(lam, w, s, 1.0 - y * (X @ w), -y * (X @ s), c)
    exact = curve(X, y, lam, w, s, c, np.array([t]))[0]
    risk = LinearRisk(Dataset.from_arrays(X, y), CostSensitiveHinge(positive, negative))
    function = total(L2(lam).along(w, s), risk.phi.along(X @ w, X @ s))
    found = minimize_along(function, 0.0, batch=batch)
    start = curve(X, y, lam, w, s, c, np.zeros(1))[0]
    # the search begins at NEAR_ZERO; where the minimum is at 0 it says so by a step of next to nothing
    assert min(found.value, start) <= exact * (1.0 + 1e-12)


PIECES = {
    "hinge": ("hinge", {}, lambda f, y: np.maximum(0.0, 1.0 - y * f)),
    "costs": (
        "cost_sensitive_hinge",
        {"cost_positive": 3.0, "cost_negative": 0.5},
        lambda f, y: np.where(y > 0.0, 3.0, 0.5) * np.maximum(0.0, 1.0 - y * f),
    ),
    "perceptron": ("perceptron", {}, lambda f, y: np.maximum(0.0, -y * f)),
    "novelty": ("novelty", {"rho": 0.7}, lambda f, y: np.maximum(0.0, 0.7 - f)),
    "median": ("least_absolute_deviation", {}, lambda f, y: np.abs(f - y)),
    "quantile": ("quantile", {"tau": 0.8}, lambda f, y: np.maximum(0.8 * (y - f), 0.2 * (f - y))),
    "tube": ("epsilon_insensitive", {"epsilon": 0.3}, lambda f, y: np.maximum(0.0, np.abs(f - y) - 0.3)),
    "no tube": ("epsilon_insensitive", {"epsilon": 0.0}, lambda f, y: np.abs(f - y)),
}
"""Every loss that has breakpoints, and its formula."""


def test_every_loss_that_claims_to_be_piecewise_linear_is_tried():
    y = {"binary": [-1.0, 1.0], "regression": [0.5, 1.5], "novelty": [1.0, 1.0]}
    claims = set()
    for entry in LOSSES.all():
        if entry.facts["task"] in y and issubclass(entry.cls, OneScoreLoss):
            targets = Targets(np.array(y[entry.facts["task"]]))
            loss = entry.cls()
            if loss.prepare(targets, loss.summarise(targets)).piecewise_linear:
                claims.add(entry.name)
    assert claims == {name for name, _, _ in PIECES.values()}


@pytest.mark.parametrize("pieces", PIECES)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
def test_no_point_of_the_line_is_lower(pieces, seed, weighted, ratio):
    """Scores on kinks, rows that do not move, weights, l1: J at the step against J at 4,000 other points."""
    name, options, formula = PIECES[pieces]
    random = np.random.default_rng(seed)
    digits = int(random.integers(0, 4))
    X = random.normal(size=(30, 4)).round(digits)
    y = (
        random.choice([-1.0, 1.0], 30)
        if name in ("hinge", "cost_sensitive_hinge", "perceptron")
        else random.normal(size=30).round(digits)
    )
    w, s = random.normal(size=(2, 4)).round(digits) * 10.0 ** random.uniform(-1.0, 1.0, size=(2, 1))
    w[random.random(4) < 0.3] = 0.0
    weights = random.integers(0, 3, 30).astype(float) + (np.arange(30) == 0) if weighted else np.ones(30)
    lam = 10.0 ** random.uniform(-3.0, 0.5)
    risk = LinearRisk(Dataset.from_arrays(X, y, weights=weights), LOSSES.make(name, options))
    slope, jumps = risk.phi.breakpoints(X @ w, X @ s)
    l1, l2 = lam * ratio, lam * (1.0 - ratio)

    def J(t):
        points = w + np.multiply.outer(t, s)
        losses = formula(points @ X.T, y) @ weights / weights.sum()
        return losses + l1 * np.abs(points).sum(axis=-1) + 0.5 * l2 * (points**2).sum(axis=-1)

    crossing = w * s < 0.0
    jumps = np.concatenate((jumps, np.column_stack((-w / np.where(s, s, 1.0), 2.0 * l1 * np.abs(s)))[crossing]))
    slope += l1 * np.where(w != 0.0, np.sign(w) * s, np.abs(s)).sum() + l2 * (w @ s)
    t = minimum_of_pieces(slope, l2 * (s @ s), jumps)
    around = t * (1.0 + np.linspace(-0.1, 0.1, 2001)) if 0.0 < t < np.inf else np.zeros(1)
    lowest = min(J(np.append(np.geomspace(1e-6, 1e4, 2000), 0.0)).min(), J(around).min())
    assert J(np.array(min(t, 1e12))) <= lowest + 1e-9 * (1.0 + abs(lowest))


@pytest.mark.parametrize("regularizer", [L2(0.01), ElasticNet(0.01, 0.5)])
@pytest.mark.parametrize("kind", ["hinge", "least_absolute_deviation"])
def test_the_bundle_with_the_exact_search_has_the_same_minimum(kind, regularizer):
    risk = problems.real_risk(*problems.data("least_squares" if kind != "hinge" else kind), kind)
    bracket, exact = (
        LineSearchBundle(tolerance=1e-8, search=search).minimize(risk, regularizer) for search in ("bracket", "exact")
    )
    assert exact.converged
    assert exact.objective == pytest.approx(bracket.objective, rel=2e-8)
    assert exact.lower_bound <= bracket.objective


def test_the_exact_search_says_what_it_needs():
    X, y = problems.data("hinge")
    hinge = problems.real_risk(X, y, "hinge")
    for risk in (problems.real_risk(X, y, "logistic"), FreeIntercept(hinge)):
        with pytest.raises(IncompatibleError, match=r"piecewise linear .* search: bracket"):
            LineSearchBundle(search="exact").minimize(risk, L2(0.01))


def test_a_fixed_mu_is_kept_and_an_adapted_one_avoids_steep_places(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 7))
    risk, points, inside = problems.real_risk(X, random.poisson(np.exp(0.5 * X[:, 0])), "poisson"), [], Cuts.at

    def at(self, w, b, f):
        points.append(w)
        return inside(self, w, b, f)

    monkeypatch.setattr(Cuts, "at", at)
    for mu in (1.0, 0.1, None):
        points.clear()
        solution = LineSearchBundle(tolerance=0.0, max_iterations=20, mu=mu).minimize(risk, L2(1e-6))
        once = len(points) == solution.iterations  # where it starts, and one after each but the last
        assert once == (mu is not None)
