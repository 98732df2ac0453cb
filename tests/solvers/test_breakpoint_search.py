"""Algorithm 2 of the F-measure paper (BM-ls-CS): exact search over sorted breakpoints, the reference of ours.

The text at hand has lost the formulas; derived here. With costs c_i, scores f_i and their change d_i along the step,

    g(t) = lambda/2 ||w + t s||^2 + 1/m sum_i c_i max(0, b_i + t a_i),    b_i = 1 - y_i f_i,   a_i = -y_i d_i

has the derivative g'(t) = lambda (t ||s||^2 + <w, s>) + 1/m sum of c_i a_i over the i with b_i + t a_i > 0: a rising
line that jumps by c_i |a_i| / m at each breakpoint t_i = -b_i / a_i. Its zero is on a line ("slash area") or in a jump
("vertical area"). O(m log m) for the sort.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmrm.data.dataset import Dataset
from bmrm.losses.cost_sensitive_hinge import CostSensitiveHinge
from bmrm.numerics.line_search import minimize_along, total
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk


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


@settings(deadline=None, max_examples=150)
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
@settings(deadline=None, max_examples=150)
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
