import numpy as np
import pytest

from bmrm.kernels.products import lines as kernel


@pytest.mark.parametrize("dim", [1, 5, kernel.CHUNK, 2 * kernel.CHUNK + 3])
def test_absolute_values_on_a_line_are_those_of_numpy(dim):
    rng = np.random.default_rng(dim)
    w, step = rng.normal(size=dim), rng.normal(size=dim)
    w[rng.random(dim) < 0.3] = 0.0
    step[rng.random(dim) < 0.3] = 0.0
    t = np.array([0.0, 1.0, -3.0, 1e-9])
    values, slopes = np.full(4, np.nan), np.full(4, np.nan)
    kernel.absolute_line(w, step, t, values, slopes)
    for k in range(4):
        point = w + t[k] * step
        assert values[k] == pytest.approx(np.abs(point).sum(), rel=1e-12)
        assert slopes[k] == pytest.approx(np.sign(point) @ step, rel=1e-12, abs=1e-12 * dim)


def test_no_places_no_values():
    values, slopes = np.zeros(0), np.zeros(0)
    kernel.absolute_line(np.ones(3), np.ones(3), np.zeros(0), values, slopes)
