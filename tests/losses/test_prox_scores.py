"""Proximal points of losses of several scores: against other software, their definition, and row by row."""

import numpy as np
import pytest
from cvxopt import matrix, solvers
from scipy.optimize import minimize

from bmrm.losses import LOSSES
from bmrm.losses._core.softmax_prox import _by_one_number
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


ENVELOPED = [loss for loss in PROXIMAL if loss.settle_scores_row is not None]
SIGMAS = (0.1, 1.0, 30.0, 1e4)


def enveloped(loss, classes, sigma=1.0):
    """Rows some of which have weight 0, their masses, and scores of which every other row's are near a kink."""
    y = np.arange(60) % classes
    masses = np.random.default_rng(9).choice([0.0, 0.5, 1.0, 3.0], size=60)
    targets = Targets(y.astype(float), masses)
    rng = np.random.default_rng(10)
    z, whole = rng.normal(size=(60, classes)), loss.prepare(targets, loss.summarise(targets))
    near, rivals = np.arange(0, 60, 2), (y[::2] + 1) % classes
    z[near] -= 5.0  # the rival is ahead of the others
    z[near, y[::2]] += 5.0
    z[near, rivals] = z[near, y[::2]] - whole.arguments[0][y[::2], rivals] + 2.0 / sigma * rng.random(30)
    return whole, masses, z


@pytest.mark.parametrize("loss", ENVELOPED, ids=str)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_envelopes_are_those_of_the_proximal_points(loss, sigma):
    for classes in classes_of(loss):
        whole, masses, z = enveloped(loss, classes, sigma)
        (value, product, square), slope, _ = whole.moreau(z, sigma)
        f = loss.prox_scores(z, masses / sigma, whole.y)
        np.testing.assert_allclose(slope, sigma * (z - f), atol=1e-11 * sigma)
        assert value == pytest.approx(masses @ loss.value(f, whole.y), rel=1e-9)
        assert product == pytest.approx(np.sum(slope * f), abs=1e-9 * masses.sum())
        assert square == pytest.approx(np.sum((z - f) ** 2), rel=1e-9)
        assert not slope[masses == 0.0].any()
        # as slopes of the loss are: a share of the mass for each class, taken from the true one
        others = slope.copy()
        others[np.arange(60), whole.y] = 0.0
        assert np.all(others >= 0.0)
        assert np.all(others.sum(axis=1) <= masses * (1.0 + 1e-15))


@pytest.mark.parametrize("loss", ENVELOPED, ids=str)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_table_of_a_row_is_the_derivative_of_its_slope(loss, sigma):
    """diag(c) - c c' / sum(c), but for the few rows that a small step takes over a kink."""
    for classes in classes_of(loss):
        whole, _, z = enveloped(loss, classes, sigma)
        _, slope, table = whole.moreau(z, sigma)
        assert np.count_nonzero(table.any(axis=1)) > 5
        direction = np.random.default_rng(11).normal(size=z.shape)
        small = 1e-5 / sigma
        change = (whole.moreau(z + small * direction, sigma)[1] - slope) / small
        totals = np.maximum(table.sum(axis=1), 1e-300)[:, None]
        expected = table * direction - table * np.sum(table * direction, axis=1)[:, None] / totals
        apart = np.abs(change - expected).max(axis=1) > 1e-5 * sigma
        assert np.count_nonzero(apart) <= 2


@pytest.mark.parametrize("loss", ENVELOPED, ids=str)
def test_envelopes_along_a_step(loss):
    ts = np.array([0.0, 0.3, 2.0])
    for classes in classes_of(loss):
        whole, _, z = enveloped(loss, classes)
        step = np.random.default_rng(12).normal(size=z.shape)
        for sigma in SIGMAS:
            values, derivatives = whole.moreau_along(z, step, sigma)(ts)
            for t, value, derivative in zip(ts, values, derivatives, strict=True):
                (loss_there, _, square), slope, _ = whole.moreau(z + t * step, sigma)
                assert value == pytest.approx(loss_there + 0.5 * sigma * square, rel=1e-12)
                assert derivative == pytest.approx(np.sum(slope * step), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", ENVELOPED, ids=str)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_slopes_prove_planes_below_the_loss(loss, sigma):
    """<slope, g> - conjugate <= loss(g) for every g, with equality at f (Fenchel)."""
    rng = np.random.default_rng(13)
    for classes in classes_of(loss):
        whole, _, z = enveloped(loss, classes, sigma)
        (value, product, _), slope, _ = whole.moreau(z, sigma)
        f = z - slope / sigma
        assert np.sum(slope * f) - (product - value) == pytest.approx(whole.value_and_slope(f)[0], rel=1e-9)
        for far in (1e-3 / sigma, 1.0, 100.0):
            g = f + far * rng.normal(size=f.shape)
            assert np.sum(slope * g) - (product - value) <= whole.value_and_slope(g)[0] * (1.0 + 1e-12) + 1e-10


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e7])
def test_the_offset_is_minus_the_conjugate_at_a_slope_that_the_loss_has(loss, step):
    """Of steps that are no proximal ones, and take more than the loss can give; against a program's solution."""
    classes = classes_of(loss)[-1] if getattr(loss, "cost", None) else 3
    whole, rng = prepared(loss, classes, rows=12), np.random.default_rng(6)
    for own in whole.y[:6].tolist():
        moves = step * rng.dirichlet(np.full(classes, 0.3)) * rng.choice([1.0, 0.5, 1.0 + 1e-12])
        moves[own] = 1e9
        offset = loss.offset_scores_row(moves, step, own, *whole.arguments)
        slope = moves / step
        others = np.delete(slope, own)
        assert others.min() >= 0.0
        assert others.sum() <= 1.0 + 1e-15
        assert slope.sum() == pytest.approx(0.0, abs=1e-15)
        if loss.name == "softmax":
            shares = np.append(others, max(0.0, 1.0 - others.sum()))
            expected = -np.sum(shares[shares > 0.0] * np.log(shares[shares > 0.0]))
        else:
            costs = loss._table(classes)[own]
            expected = float(slope @ costs)
        assert offset == pytest.approx(expected, rel=1e-9, abs=1e-14)
        f = 3.0 * rng.normal(size=(200, classes))
        values = loss.value(f, np.full(200, own))
        assert np.all(values >= f @ slope + offset - 1e-13 * (1.0 + np.abs(f).sum(axis=1)))


def test_the_offset_of_a_small_share_keeps_its_digits():
    softmax = LOSSES.make("softmax")
    for share in (1e-10, 1e-20, 1e-300):
        offset = softmax.offset_scores_row(np.array([0.0, share]), 1.0, 0)
        assert offset == pytest.approx(share * (1.0 - np.log(share)), rel=1e-9)
