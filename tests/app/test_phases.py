"""What a user who waits is told, and that the seconds of a run add up."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bmrm.app.phases import NAMES
from bmrm.kernels.compiling import Compiling, name_of

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
schema: 2
data: {train: data.svm, bias: none}
loss: hinge
regularizer: {name: l2, lambda: 1.0e-3}
output: {directory: out}
"""


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 20))
    y = np.sign(X @ random.normal(size=20))
    rows = (" ".join([f"{label:g}", *(f"{j + 1}:{x:.4g}" for j, x in enumerate(row))]) for label, row in zip(y, X))
    (tmp_path / "data.svm").write_text("\n".join(rows) + "\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def run(folder, *command, **environment):
    begin = time.perf_counter()
    done = subprocess.run(
        [*(command or (sys.executable,)), "-m", "bmrm.run", "config.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - begin
    summary = json.loads((folder / "out" / "summary.json").read_text())
    return done, summary["seconds"], wall


def test_the_seconds_of_a_run_add_up_to_the_time_that_a_user_waits(folder):
    done, seconds, wall = run(folder)
    assert set(seconds) == {"total", *NAMES}
    assert all(part >= 0.0 for part in seconds.values())
    assert sum(seconds[name] for name in NAMES) == pytest.approx(seconds["total"], rel=1e-9)
    # Python's own end, and that of whoever started it, is all that is missing
    assert 0.6 * wall <= seconds["total"] <= wall
    for name in ("start", "load", "draw"):
        assert seconds[name] > 0.0
    assert "seconds" in done.stdout
    assert "start" in done.stdout
    assert "measure" in done.stdout


@pytest.mark.nightly
def test_compiling_is_told_with_what_is_compiled_and_once(folder):
    cold = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    done, seconds, _ = run(folder, **cold)
    said = [
        line for line in done.stderr.splitlines() if line.startswith("compiling kernels (once, kept for later runs)")
    ]
    assert said, done.stderr
    assert "svmlight" in said[0] or "decimal" in said[0]
    assert seconds["compile"] > max(seconds["risk"], seconds["master"], seconds["solver"])
    done, again, _ = run(folder, **cold)
    assert "compiling" not in done.stderr
    assert again["compile"] < 0.5 * seconds["compile"]


@pytest.mark.nightly
@pytest.mark.mpi
def test_rank_0_speaks_for_all(folder):
    from tests.mpi.launch import mpirun

    done, seconds, _ = run(folder, mpirun(), "-n", "2", sys.executable, NUMBA_CACHE_DIR=str(folder / "cache"))
    said = [line for line in done.stderr.splitlines() if line.startswith("compiling kernels")]
    assert said
    assert len(said) == len(set(said)), "two ranks said the same"
    assert sum(seconds[name] for name in NAMES) == pytest.approx(seconds["total"], rel=1e-9)


def test_a_fit_in_python_says_what_it_compiles(folder):
    code = """
import numba
import bmrm.kernels.compiling as compiling
compiling.SAY_AFTER = 0.01
from bmrm.kernels.jit import jit

def slowly(x):
    total = 0.0
    for i in range(100):
        total += x[i % 3] ** 2.5
    return total

import numpy as np
jit(slowly)(np.ones(3))
print(compiling.COMPILING.kernels, compiling.COMPILING.seconds > 0.0, compiling.COMPILING.now)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["1", "True", "None"]
    assert done.stderr.count("compiling kernels (once, kept for later runs): __main__.slowly") == 1


def test_kernels_of_other_packages_are_counted_and_not_told_of():
    code = """
import numba
import bmrm.kernels.compiling as compiling
compiling.SAY_AFTER = 0.01
import bmrm.kernels.jit

made = {}
exec("def unnamed(x): return x + sum([i ** 2.5 for i in range(3)])", {"__name__": None}, made)
print(numba.njit(made["unnamed"])(1.0) > 1.0, compiling.COMPILING.kernels > 0)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["True", "True"]
    assert done.stderr == ""


def test_seconds_of_kernels_within_kernels_count_once():
    clock = Compiling()
    clock.enter()
    clock.enter()
    time.sleep(0.02)
    clock.leave()
    assert clock.seconds == 0.0
    assert clock.elapsed >= 0.02
    clock.leave()
    assert clock.seconds == pytest.approx(0.02, abs=0.02)
    assert clock.elapsed == clock.seconds


def test_kernels_are_named_without_their_digest():
    from bmrm.kernels.jit import fast_jit, specialised
    from bmrm.kernels.rows.envelopes import envelope
    from bmrm.losses.hinge import Hinge

    functions = {"prox_row": Hinge.prox_row, "value_row": Hinge.value_row}
    assert name_of(specialised(envelope, fast_jit, **functions)) == "envelopes.envelope"
