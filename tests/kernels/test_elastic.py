import numpy as np
import pytest

from bmrm.kernels.masters import elastic as kernel


def soft(x, threshold):
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0.0)


@pytest.mark.parametrize("n", [0, 1, 5, 17])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_gram_matrix_gains_and_loses_columns(n, count):
    rng = np.random.default_rng(n + 100 * count)
    rows = rng.normal(size=(n + 3, 12))
    columns = rng.choice(12, size=count, replace=False).astype(np.int64)
    sign = rng.choice([-1.0, 1.0], size=count)
    start = rng.normal(size=(n + 4, n + 4))
    start += start.T
    G = start.copy()
    kernel.change_gram(rows, 2, 2 + n, columns, sign, G)
    part = rows[2 : 2 + n, columns]
    expected = start.copy()
    expected[2 : 2 + n, 2 : 2 + n] += (part * sign) @ part.T
    np.testing.assert_allclose(G, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(G, G.T)


def test_weights_are_those_of_the_formula():
    pull = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, np.nextafter(2.0, 3.0)])
    w = np.empty(8)
    absolute, square = kernel.weights_of(pull, 2.0, 0.5, w)
    np.testing.assert_array_equal(w, -soft(pull, 2.0) / 0.5)
    assert not np.signbit(w[[1, 2, 3, 4, 5]]).any()
    assert absolute == pytest.approx(np.abs(w).sum(), rel=1e-15)
    assert square == pytest.approx(w @ w, rel=1e-15)


@pytest.mark.parametrize("l1", [0.0, 0.3, 2.0])
def test_longest_rise_is_the_maximum(l1):
    rng = np.random.default_rng(int(10 * l1))

    def value(pull, step, linear, t):
        return linear * t - 0.5 * (soft(pull + t * step, l1) ** 2).sum()

    inside = 0
    for _ in range(200):
        d = int(rng.integers(1, 30))
        pull, step = rng.normal(size=d), rng.normal(size=d) * 10.0 ** rng.integers(-2, 3)
        # a direction of ascent
        linear = float(soft(pull, l1) @ step) + abs(rng.normal()) * float(step @ step)
        t = kernel.longest_rise(pull, step, l1, linear)
        assert 0.0 <= t <= 1.0
        best = max(value(pull, step, linear, s) for s in np.r_[np.linspace(0, 1, 200), t * (1 + 1e-5), t * (1 - 1e-5)])
        size = abs(linear) + 0.5 * (soft(pull, l1) ** 2).sum()
        assert value(pull, step, linear, t) >= min(best, value(pull, step, linear, 1.0)) - 1e-12 * size
        if t < 1.0:
            inside += 1
            slope = kernel.slope_along(pull, step, l1, t)[0]
            assert slope == pytest.approx(float(soft(pull + t * step, l1) @ step), rel=1e-12)
            assert abs(linear - slope) <= 1e-12 * (abs(linear) + np.abs(soft(pull + t * step, l1)) @ np.abs(step))
    assert inside > 20
