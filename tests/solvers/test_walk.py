"""Where the next point of a walk along lambdas begins."""

import signal

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import bmrm
from bmrm.risk.score_function import LossPhi
from bmrm.solvers._core.quadratic_walk import Descent
from bmrm.solvers._core.walk import predicted


def curve(t):
    return np.array([1.0 + t + t * t, -2.0, 3.0 * t * t - 1.0])


def test_a_parabola_is_followed():
    for steps in ([2.0], [2.0, 1.5], [2.0, 1.5, 1.0]):
        places = [(t, curve(t)) for t in steps]
        found = predicted(places, steps[-1] - 0.5, kinked=False)
        best = {1: curve(2.0), 2: 2.0 * curve(1.5) - curve(2.0), 3: curve(0.5)}[len(steps)]
        assert found == pytest.approx(best)


def test_where_nothing_can_be_told_the_last_weights_stay():
    places = [(2.0, curve(2.0)), (1.5, curve(1.5))]
    for at in (np.nan, 1.5, 0.4):  # unknown, the same, too far
        assert predicted(places, at, kinked=False) is places[-1][1]


def test_kinks_hold_weights_and_signs():
    places = [(2.0, np.array([1.0, 3.0, -1.0])), (1.0, np.array([0.0, 1.0, -2.0]))]
    assert predicted(places, 0.0, kinked=True).tolist() == [0.0, 0.0, -3.0]
    assert predicted(places, 0.0, kinked=False).tolist() == [-1.0, -1.0, -3.0]


@pytest.mark.parametrize(("regularizer", "least"), [("l2", 3.5), ("l1", 1.5)])
def test_a_walk_reads_the_rows_less(regularizer, least):
    X, y = load_breast_cancer(return_X_y=True)
    X = np.hstack((X, np.sqrt(X), np.log1p(X)))  # more columns than are solved at once
    lambdas = np.geomspace(1.0, 1e-3, 20) * (1.0 if regularizer == "l2" else 0.2)
    given = {"loss": "logistic", "scale": "standardize", "regularizer": regularizer}
    found = bmrm.path(X, y, lambdas=lambdas, **given)
    alone = sum(bmrm.fit(X, y, lam=lam, **given).solution.passes for lam in lambdas)
    assert least * found.passes.sum() <= alone


@pytest.mark.parametrize(
    ("loss", "regularizer", "owner", "name"),
    [
        ("logistic", "l1", LossPhi, "value_and_slope"),
        ("least_squares", "l1", Descent, "guessed"),
        ("least_squares", "group_l2", Descent, "guessed"),
    ],
)
def test_ctrl_c_ends_the_walk(loss, regularizer, owner, name, monkeypatch):
    """At the point where it was pressed; where points are proved together, with these."""
    X, y = load_breast_cancer(return_X_y=True)
    inner, calls = getattr(owner, name), []

    def pressed(self, given):
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(signal.SIGINT)
        return inner(self, given)

    monkeypatch.setattr(owner, name, pressed)
    lambdas = np.geomspace(1e-1, 1e-3, 60)
    found = bmrm.path(X, y, loss=loss, lambdas=lambdas, scale="standardize", regularizer=regularizer, bias="none")
    assert len(found) < 60
    assert found.statuses[-1] is bmrm.Status.INTERRUPTED
