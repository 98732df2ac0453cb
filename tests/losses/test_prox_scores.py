"""Proximal points of losses of several scores: against other software, their definition, and row by row."""

import numpy as np
import pytest
from cvxopt import matrix, solvers
from scipy.optimize import minimize

from bmrm.losses import LOSSES
from bmrm.losses.softmax_prox import _by_one_number
from bmrm.problem import Targets
from tests.targets import losses

PROXIMAL = [loss for loss in losses() if hasattr(loss, "prox_scores")]
STEPS = (1e-12, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e6)
SIZES = (0.1, 1.0, 30.0, 1000.0)


def prepared(loss, classes, rows=40, seed=0):
    y = np.random.default_rng(seed).integers(0, classes, rows)
    y[:classes] = np.arange(classes)
    targets = Targets(y.astype(float))
    return loss.prepare(targets, loss.summarise(targets))


def classes_of(loss):
    cost = getattr(loss, "cost", None)
    return (2, 3, 7, 20) if cost is None else (len(cost),)


def scores(rows, classes, size, seed=1):
    """Random ones, some in ties."""
    z = np.random.default_rng(seed).normal(size=(rows, classes)) * size
    z[: rows // 4] = np.round(z[: rows // 4])
    return z


def row_by_row(loss, z, step, y, arguments, guess=0.0):
    moves, work = np.empty_like(z), np.empty((2, z.shape[1]))
    found = []
    for i in range(len(z)):
        moves[i] = guess
        found.append(loss.prox_scores_row(z[i], step, y[i], moves[i], work, *arguments))
    values, rooms = np.array(found).T
    return moves, values, rooms


def test_the_losses_that_have_one():
    assert {loss.name for loss in PROXIMAL} == {"multiclass_hinge", "softmax"}


@pytest.mark.parametrize("loss", [loss for loss in PROXIMAL if loss.name == "multiclass_hinge"], ids=str)
@pytest.mark.parametrize("step", [0.1, 1.0, 20.0])
def test_multiclass_hinge_as_by_cvxopt(loss, step):
    classes = classes_of(loss)[-1] if loss.cost else 4
    whole = prepared(loss, classes, rows=8)
    z = scores(8, classes, 2.0)
    found = loss.prox_scores(z, step, whole.y)
    for i, own in enumerate(whole.y):
        # over f and the loss's bound t: 1/2 |f - z|^2 + step t, with cost_k + f_k - f_own <= t
        P, q = np.diag([1.0] * classes + [0.0]), np.append(-z[i], step)
        G = np.column_stack((np.eye(classes), -np.ones(classes)))
        G[:, own] -= 1.0
        options = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
        answer = solvers.qp(*(matrix(a) for a in (P, q, G, -whole.arguments[0][own])), options=options)
        np.testing.assert_allclose(found[i], np.ravel(answer["x"])[:classes], atol=1e-5)


@pytest.mark.parametrize("step", [0.1, 1.0, 20.0])
def test_softmax_as_by_scipy(step):
    loss = LOSSES.make("softmax")
    whole, z = prepared(loss, 4, rows=8), scores(8, 4, 2.0)
    found = loss.prox_scores(z, step, whole.y)
    for i in range(8):
        own = whole.y[i : i + 1]

        def height(f, i=i, own=own):
            return step * loss.value(f[None], own)[0] + 0.5 * np.sum((f - z[i]) ** 2)

        def slope(f, i=i, own=own):
            return step * loss.slope(f[None], own)[0] + f - z[i]

        np.testing.assert_allclose(found[i], minimize(height, z[i], jac=slope, tol=1e-12).x, atol=1e-6)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("step", [*STEPS, 1e12])
def test_rows_are_optimal(loss, step):
    """Strong convexity: step (l(g) - l(f)) >= <z - f, g - f> for every g; and the loss at f is told."""
    rng = np.random.default_rng(3)
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        for size in SIZES:
            z = scores(whole.rows, classes, size)
            moves, values, _ = row_by_row(loss, z, step, whole.y, whole.arguments)
            f = z - moves
            np.testing.assert_allclose(values, loss.value(f, whole.y), rtol=1e-9, atol=1e-12 * size)
            np.testing.assert_allclose(moves.sum(axis=1), 0.0, atol=1e-13 * (1.0 + np.abs(moves).max()))
            for far in (1e-3, 1.0, 100.0):
                g = f + far * rng.normal(size=f.shape)
                other = loss.value(g, whole.y)
                sizes = step * (1.0 + values + other) + np.sum((np.abs(z) + np.abs(moves)) * np.abs(g - f), axis=1)
                assert np.all(step * (other - values) >= np.sum(moves * (g - f), axis=1) - 1e-12 * sizes)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_one_row_is_as_many_wherever_it_begins(loss, step):
    rng = np.random.default_rng(4)
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        for size in SIZES:
            z = scores(whole.rows, classes, size)
            f = loss.prox_scores(z, step, whole.y)
            for guess in (0.0, rng.normal(size=classes), 1e3 * rng.normal(size=classes)):
                moves, _, _ = row_by_row(loss, z, step, whole.y, whole.arguments, guess)
                np.testing.assert_allclose(z - moves, f, atol=1e-9 * (1.0 + size) + 1e-15 * step)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
def test_values_of_rows(loss):
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        for size in SIZES:
            z = scores(whole.rows, classes, size)
            found = [loss.value_scores_row(a, b, *whole.arguments) for a, b in zip(z, whole.y, strict=True)]
            np.testing.assert_allclose(found, loss.value(z, whole.y), rtol=1e-12)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
def test_a_step_of_nothing(loss):
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        z = scores(whole.rows, classes, 1.0)
        np.testing.assert_array_equal(loss.prox_scores(z, 0.0, whole.y), z)
        mixed = loss.prox_scores(z, np.arange(whole.rows) % 2 * 0.5, whole.y)
        np.testing.assert_array_equal(mixed[::2], z[::2])
        np.testing.assert_allclose(mixed[1::2], loss.prox_scores(z, 0.5, whole.y)[1::2], atol=1e-12)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("step", [0.3, 7.0])
def test_points_draw_together(loss, step):
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        z, x = (scores(whole.rows, classes, 2.0, seed) for seed in (5, 6))
        f, g = (loss.prox_scores(a, step, whole.y) for a in (z, x))
        assert np.all(np.sum((f - g) ** 2, axis=1) <= np.sum((f - g) * (z - x), axis=1) + 1e-12)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("step", [0.3, 7.0])
def test_the_room_is_how_far_scores_may_move(loss, step):
    rng, roomy = np.random.default_rng(7), 0
    for classes in classes_of(loss):
        whole = prepared(loss, classes)
        z = scores(whole.rows, classes, 5.0)
        moves, _, rooms = row_by_row(loss, z, step, whole.y, whole.arguments)
        assert np.all(rooms >= 0.0)
        roomy += np.count_nonzero(rooms)
        for _ in range(5):
            x = z + 0.999 * rooms[:, None] * rng.choice([-1.0, 1.0], size=z.shape)
            stays = row_by_row(loss, x, step, whole.y, whole.arguments)[0]
            np.testing.assert_allclose(stays[rooms > 0.0], moves[rooms > 0.0], atol=1e-13)
        # Down with what has slope and up with the rest: some row does not stay.
        x = z + 1.001 * rooms[:, None] * np.where(moves > 0.0, -1.0, 1.0)
        x[np.arange(whole.rows), whole.y] = (z - 1.001 * rooms[:, None])[np.arange(whole.rows), whole.y]
        goes = row_by_row(loss, x, step, whole.y, whole.arguments)[0]
        free = (rooms > 0.0) & (moves == 0.0).all(axis=1)
        assert np.all(np.any(goes != moves, axis=1)[free])
    assert (roomy > 0) == (loss.name == "multiclass_hinge")


def test_both_ways_to_a_softmax_point_agree():
    loss = LOSSES.make("softmax")
    for classes in (2, 5, 30):
        whole = prepared(loss, classes)
        for step in (0.01, 1.0, 50.0):
            z = scores(whole.rows, classes, 3.0)
            moves, values, _ = row_by_row(loss, z, step, whole.y, ())
            other = np.empty(classes)
            for i in range(whole.rows):
                value, _ = _by_one_number(z[i], step, whole.y[i], other)
                np.testing.assert_allclose(other, moves[i], rtol=1e-10, atol=1e-14 * step)
                assert value == pytest.approx(values[i], rel=1e-10, abs=1e-14)
