"""Rows that lie in a file and are read part by part: one class more, and solvers that ask only for A do the rest."""

import numpy as np
import pytest

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Dense
from bmrm.data.matrix.features import Features
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Targets
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS, reads_at_random

ROWS, COLUMNS = 9000, 6


class OnDisk(Features):
    """The rows of a .npy file, of which no more than a part is in memory."""

    def __init__(self, path):
        self.path, self.read = path, 0
        table = np.load(path, mmap_mode="r")
        self.shape, self.nnz, self.dtype = table.shape, table.size, table.dtype

    shape = nnz = dtype = None

    def part(self, start, stop):
        assert stop - start <= 8192
        self.read += stop - start
        return Dense(np.array(np.load(self.path, mmap_mode="r")[start:stop]))

    def select(self, rows, check=lambda: None):
        assert len(rows) <= 300
        return Dense(np.load(self.path, mmap_mode="r")[rows])


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    random = np.random.default_rng(3)
    X = random.normal(size=(ROWS, COLUMNS)) * [1.0, 2.0, 0.5, 1.0, 3.0, 1.0] + 0.3
    path = tmp_path_factory.mktemp("disk") / "X.npy"
    np.save(path, X)
    score = X @ random.normal(size=COLUMNS)
    return path, X, score + random.normal(size=ROWS)


def risks(rows, loss, free, columns=None):
    path, X, score = rows
    y = np.where(score > 0.5, 1.0, -1.0) if loss != "softmax" else np.digitize(score, [-1.0, 1.0]).astype(float)
    on_disk = OnDisk(path)
    for matrix in (on_disk, X):
        risk = LinearRisk(Dataset(matrix, Targets(y)), LOSSES.make(loss), columns=columns, threads=2)
        yield FreeIntercept(risk) if free else risk
    assert on_disk.read > 0


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("loss", "solver", "options"),
    [
        ("hinge", "bundle", {}),
        ("hinge", "line_search_bundle", {}),
        ("logistic", "lbfgs", {}),
        ("logistic", "newton", {"hessian": "cg"}),
        ("logistic", "newton", {"hessian": "dense"}),
        ("softmax", "lbfgs", {}),
        ("logistic", "auto", {}),
        ("hinge", "auto", {}),
    ],
)
def test_streamed_rows_are_minimised_as_rows_in_memory_are(rows, loss, solver, options, free):
    settings = {"solver": solver, "solver_options": options, "tolerance": 1e-5}
    streamed, resident = (bmrm.minimize(risk, bmrm.L2(1e-2), **settings) for risk in risks(rows, loss, free))
    assert streamed.status.name == "CONVERGED"
    assert streamed.lower_bound <= resident.objective * (1 + 1e-12)
    assert streamed.objective == pytest.approx(resident.objective, rel=1.1e-5)


def test_columns_are_scaled_in_the_same_way(rows):
    columns = Columns(scale=np.arange(1.0, 1.0 + COLUMNS), shift=np.linspace(-1.0, 1.0, COLUMNS))
    w = np.linspace(-0.5, 0.5, COLUMNS)
    found = [risk.value_and_subgradient(w) for risk in risks(rows, "logistic", False, columns)]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-14)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_statistics_and_changed_rows_are_those_of_the_whole(rows):
    path, X, _ = rows
    disk, whole, weights = OnDisk(path), Dense(X), np.linspace(0.5, 1.5, ROWS)
    np.testing.assert_allclose(disk.largest(), whole.largest())
    np.testing.assert_allclose(disk.weighted_squares(weights, None), weights @ X**2, rtol=1e-12)
    mean, units = X.mean(axis=0), np.full(COLUMNS, 2.0)
    np.testing.assert_allclose(disk.squares_around(mean, weights, units), weights @ ((X - mean) / 2.0) ** 2, rtol=1e-12)
    np.testing.assert_allclose(np.array(disk.ends(disk.everywhere())), [X.max(axis=0), X.min(axis=0)])
    np.testing.assert_allclose(disk.gram(weights, np.array([1, 4]), lambda: None)[0], (X.T * weights @ X)[1::3, 1::3])
    unit = disk.of_norm_one().times(units).less(mean)
    expected = X / np.linalg.norm(X, axis=1, keepdims=True) * 2.0 - mean
    out = np.empty(ROWS)
    unit.products(1).scores(0, ROWS, mean, 0.0, out)
    np.testing.assert_allclose(out, expected @ mean, rtol=1e-9, atol=1e-12)
    assert (disk.longest_row, disk.full, disk.fits(COLUMNS), disk.far_entry()) == (COLUMNS, True, True, None)
    total = b"".join(array.tobytes() for array in disk.arrays())
    assert total == X.tobytes()


def test_what_reads_rows_at_random_is_refused_by_name(rows):
    risk = next(risks(rows, "hinge", False))
    for solver, words in {"dual_coordinate": "rows in memory", "pegasos": "sum over rows"}.items():
        with pytest.raises(IncompatibleError, match=words):
            bmrm.minimize(risk, bmrm.L2(1e-2), solver=solver)


@pytest.mark.parametrize("name", [entry.name for entry in SOLVERS.all()])
def test_what_a_solver_requires_of_a_risk_says_whether_it_takes_rows_on_disk(name, rows):
    both = risks(rows, "logistic", False)
    on_disk, in_memory = next(both), next(both)
    regularizers = bmrm.L2(1e-2), bmrm.ElasticNet(1e-2), bmrm.L1(1e-2)

    def takes(risk):
        for regularizer in regularizers:
            try:
                return bmrm.minimize(risk, regularizer, solver=name, max_iterations=2).passes > 0.0
            except IncompatibleError:
                pass
        return False

    assert takes(in_memory)
    assert takes(on_disk) is not reads_at_random(SOLVERS.get(name))
