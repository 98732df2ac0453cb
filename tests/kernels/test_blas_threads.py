"""Threads of BLAS and LAPACK: as many as a matrix is worth, and afterwards as many as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import bmrm
from bmrm.kernels.blas_threads import LARGE, SMALL, lapack_threads, one_thread
from bmrm.kernels.workers import Workers

assert scipy.linalg  # its LAPACK is loaded


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    with threadpool_limits(3, user_api="blas"):
        yield


def counts() -> set[int]:
    """The threads of the libraries of numpy and scipy; that of cvxopt, where it is loaded, has one in any case."""
    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return {one["num_threads"] for one in found if "cvxopt" not in one["filepath"]}


def within(rows: int) -> set[int]:
    with lapack_threads(rows):
        return counts()


def test_a_small_factor_has_one_thread_and_a_large_one_all() -> None:
    assert within(SMALL + 1) == {1}
    assert within(LARGE - 1) == {1}
    assert within(LARGE) == {3}
    assert counts() == {3}


def test_a_tiny_factor_is_left_to_lapack() -> None:
    assert within(SMALL) == {3}


def test_products_have_one_thread_and_large_factors_what_is_allowed() -> None:
    with one_thread(large=2):
        assert counts() == {1}
        assert within(LARGE) == {2}
        assert within(LARGE - 1) == {1}
        with one_thread():
            assert within(LARGE) == {2}
        assert counts() == {1}
    assert counts() == {3}
    assert within(LARGE) == {3}


def test_no_count_is_raised_above_what_it_was() -> None:
    with threadpool_limits(1, user_api="blas"), one_thread(large=8):
        assert within(LARGE) == {1}
    with one_thread(large=8):
        assert within(LARGE) == {3}


def test_an_error_leaves_all_as_it_was() -> None:
    with pytest.raises(ValueError, match="wrong"), one_thread(), lapack_threads(LARGE):
        raise ValueError("wrong")
    assert counts() == {3}
    assert within(LARGE) == {3}


def test_beside_threads_of_our_own_blas_has_one() -> None:
    assert Workers(2).map(lambda piece: counts(), [0, 1]) == [{1}, {1}]
    assert Workers(2).map(lambda piece: counts(), [0]) == [{3}]
    assert counts() == {3}


@dataclass(frozen=True)
class Watching(bmrm.RegressionLoss):
    """Half the square, which looks at the threads."""

    seen: list[set[int]]
    smooth = True

    def value(self, f, y):  # type: ignore[no-untyped-def]
        self.seen.append(counts())
        return 0.5 * (f - y) ** 2

    def slope(self, f, y):  # type: ignore[no-untyped-def]
        return f - y


def test_a_fit_computes_in_threads_of_its_own() -> None:
    loss = Watching([])
    X = np.random.default_rng(0).normal(size=(30, 2))
    bmrm.fit(X, X[:, 0], loss=loss, regularizer=bmrm.L2(0.1), solver="lbfgs", threads=1)
    assert loss.seen
    assert all(seen == {1} for seen in loss.seen)
    assert counts() == {3}


def test_lapack_comes_without_the_rest_of_scipy_linalg_and_is_its_own() -> None:
    code = """
import sys
from bmrm.kernels.blas_threads import lapack
functions = lapack()
assert "scipy.linalg" not in sys.modules
import numpy, scipy.linalg
assert scipy.linalg.lapack.dposv is functions.dposv
assert numpy.allclose(scipy.linalg.cho_solve(scipy.linalg.cho_factor(2.0 * numpy.eye(2)), numpy.ones(2)), 0.5)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
