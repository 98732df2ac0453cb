"""Kernels that are in the cache are loaded without numba's compiler, and compute the same."""

import json
import subprocess
import sys

import pytest

FITS = """
import json, sys
import numpy as np
import bmrm
from bmrm.checks.named import instance_of
from bmrm.checks.targets import groups_for, targets_for
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES

COMPILING.speaks = False
rng, rows = np.random.default_rng(0), 60
X, found = rng.normal(size=(rows, 6)) * (rng.random((rows, 6)) < 0.5), []
for name in sys.argv[1:]:
    loss = instance_of(LOSSES, name)
    model = bmrm.fit(
        X, targets_for(loss, rows), loss=loss, regularizer=bmrm.L2(1e-2), groups=groups_for(loss, rows), threads=1,
        solver="bundle"
    )
    found.append(model.solution.objective.hex())
compiler = [name for name in ("numba.np.linalg", "scipy.linalg") if name in sys.modules]
print(json.dumps([COMPILING.kernels, compiler, found]))
"""


def fits(*losses):
    done = subprocess.run([sys.executable, "-c", FITS, *losses], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_kernels_of_the_cache_are_loaded_without_the_compiler():
    losses = ("hinge", "logistic", "softmax", "roc_area", "chain_crf", "rank_hinge")
    _, _, first = fits(*losses)  # compiles what is not there
    kernels, compiler, again = fits(*losses)
    assert kernels == 0
    assert "numba.np.linalg" not in compiler
    assert again == first
