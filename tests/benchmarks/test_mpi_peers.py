"""The race of ranks against other programs for MPI: what a peer says of itself, and shards that both read."""

from __future__ import annotations

import stat

import numpy as np
import pytest

from benchmarks import mpi_peers
from bmrm.data.dataset import Dataset
from bmrm.data.reading import read

pytestmark = pytest.mark.nightly

ASCENT = """#!/bin/sh
echo "Iter 1 Dual -1.0e+00 Primal 9.00000000000000000000e+00 Step 1 Time 0.5"
echo "Iter 2 Dual -3.9e+00 Primal 4.00300000000000000000e+00 Step 1 Time 1.5"
echo "Iter 3 Dual -3.9e+00 Primal 4.50000000000000000000e+00 Step 1 Time 2.5"
echo "Iter 4 Dual -3.9e+00 Primal 4.00000100000000000000e+00 Step 1 Time 4"
"""
NEWTON = """#!/bin/sh
echo "FUN 4.10000000000000000000e+00 time 0.25"
echo "FUN 4.00200000000000000000e+00 time 2e-05"
"""


@pytest.mark.mpi
@pytest.mark.parametrize(("said", "seconds"), [(ASCENT, [1.5, 4.0]), (NEWTON, [2e-5, np.inf])])
def test_seconds_until_a_peer_is_within_each_gap(tmp_path, said, seconds):
    program = tmp_path / "train"
    program.write_text(said)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert mpi_peers._run([str(program), "rows.svm"], 1, 4.0) == seconds


def test_shards_hold_all_rows_in_their_order(tmp_path):
    rng = np.random.default_rng(3)
    whole = Dataset.from_arrays(rng.standard_normal((7, 3)), np.where(rng.random(7) < 0.5, -1, 1))
    mpi_peers.write_shards(whole, tmp_path, 2)
    ours = [read(tmp_path / f"2-{rank}.npz") for rank in range(2)]
    theirs = [read(tmp_path / f"2.svm.{rank}", format="svmlight", features=3) for rank in range(2)]
    for shards in (ours, theirs):
        assert np.concatenate([np.asarray(part.targets.y) for part in shards]).tolist() == whole.targets.y.tolist()
    for part, text in zip(ours, theirs):
        np.testing.assert_allclose(text.X.to_dense(), part.X, rtol=1e-15)
