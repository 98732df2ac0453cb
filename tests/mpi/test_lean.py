"""Ranks that only compute stay small; a cold cache is filled by one of them."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.mpi.launch import ROOT, launch, mpirun

pytestmark = pytest.mark.mpi

CONFIG = """
schema: 2
data: {train: train.svm, test: train.svm, bias: none}
loss: LOSS
regularizer: {name: l2, lambda: 0.01}
output: {directory: out}
"""


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(1)
    lines = []
    for _ in range(100):
        x = random.normal(size=5)
        lines.append(f"{1 if x[0] + x[1] > 0 else 0} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)))
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    return tmp_path


def packages(modules):
    """The outermost packages that are not Python's own."""
    outermost = {name.partition(".")[0] for name in modules}
    return {name for name in outermost - set(sys.stdlib_module_names) if not name.startswith("__")}


@pytest.fixture(scope="module")
def bare():
    """What a process has that computes with numba under MPI, and does nothing."""
    bare = "import json, sys, numpy, numba, mpi4py.MPI, threadpoolctl; print(json.dumps(sorted(sys.modules)))"
    return json.loads(subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=True).stdout)


UNUSED = (
    "bmrm.app.config.config",
    "bmrm.app.progress",
    "bmrm.app.report",
    "bmrm.checks.few_laws",
    "bmrm.data.readers.arrow",
    "bmrm.data.readers.csv",
    "bmrm.kernels.dual.groups",
    "bmrm.kernels.dual.marginals",
    "bmrm.kernels.dual.mixtures",
    "bmrm.kernels.masters",
    "bmrm.kernels.products.columns",
    "bmrm.kernels.rankings",
    "bmrm.kernels.sequences",
    "bmrm.masters",
    "bmrm.metrics",
    "bmrm.risk.constants",
    "bmrm.risk.quadratic",
    "bmrm.risk.warm_up",
    "bmrm.solvers._core.monitor",
    "bmrm.solvers.auto",
    "numba.np.linalg",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
)
"""What an answering rank of `hinge` on svmlight text has no use for, numba's compiler and BLAS too."""


@pytest.mark.parametrize(("loss", "command"), [("hinge", []), ("roc_area", []), ("hinge", ["train"])])
def test_answering_ranks_load_numpy_the_loader_of_numba_and_the_kernels_of_the_job(folder, bare, loss, command):
    (folder / "config.yaml").write_text(CONFIG.replace("LOSS", loss))
    done = launch(2, "-m", "tests.mpi.lean", *command, str(folder / "config.yaml"), "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    status, (first, other) = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert "pydantic" in packages(first)
    assert not {"matplotlib", "sklearn", "pandas"} & packages(first), "nor does rank 0 for the measures and the picture"
    assert packages(other) <= packages(bare) | {"bmrm", "tests"}
    assert {name for name in other if name.partition(".")[0] == "scipy"} <= set(bare)
    found = [name for name in other if f"{name}.".startswith(tuple(f"{unused}." for unused in UNUSED))]
    assert found == ([] if loss == "hinge" else [name for name in found if "rankings" in name])


@pytest.mark.nightly
def test_ranks_with_a_cold_cache_compile_once(folder):
    (folder / "config.yaml").write_text(CONFIG.replace("LOSS", "hinge"))
    cache = folder / "cache"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache), "NUMBA_DEBUG_CACHE": "1"}
    command = [mpirun(), "-n", "3", sys.executable, "-m", "bmrm.run", "config.yaml", "--quiet"]

    def saved() -> list[str]:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return re.findall(r"data saved to '([^']+)'", done.stdout)

    first = saved()
    assert first
    assert len(first) == len(set(first)), "a kernel was compiled by several ranks"
    assert saved() == []
