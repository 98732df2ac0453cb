"""The first compiled call of a process leaves scipy.linalg alone; whoever needs BLAS in numba still has it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from bmrm.kernels.products.vectors import dot

assert dot(np.ones(3), np.ones(3)) == 3.0
assert "scipy.linalg" not in sys.modules
from numba import njit
from numba.np import arraymath, linalg

assert arraymath._HAVE_BLAS
a = np.arange(4.0).reshape(2, 2)
assert np.array_equal(njit(lambda x: np.dot(x, x))(a), a @ a)
assert "scipy.linalg" in sys.modules
"""


def test_first_call_without_blas() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=300)
