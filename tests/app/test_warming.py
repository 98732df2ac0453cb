"""Compiling beforehand: afterwards nothing is left to compile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.cli import main

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
schema: 2
data: {train: "synthetic:sparse_binary?rows=300&features=40", bias: none}
loss: quantile
regularizer: {name: l2, lambda: 1.0e-3}
output: {directory: out}
"""


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["hinj"], "did you mean 'hinge'?"),
        (["nowhere.yaml"], "nowhere.yaml"),
        (["no_such_module:Loss"], "cannot be imported"),
    ],
)
def test_what_cannot_be_compiled_for_is_refused(capsys, names, said):
    assert main(["warm", *names]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.nightly
def test_after_warm_a_run_compiles_nothing(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_DEBUG_CACHE": "1",
    }

    def run(*command):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=550
        )
        assert done.returncode == 0, done.stderr
        return done

    done = run("bmrm.cli", "warm", "config.yaml")
    assert re.search(r"^\d+ kernels compiled for config.yaml in .* s by 1 process$", done.stdout, re.MULTILINE)
    assert int(re.search(r"^(\d+) kernels", done.stdout, re.MULTILINE)[1]) > 20
    assert not (tmp_path / "out").exists()
    done = run("bmrm.run", "config.yaml")
    assert "data saved" not in done.stdout
    assert "compiling" not in done.stderr


FIT = """
import sys
import numpy as np
import bmrm
from bmrm.checks.plug_in import groups_for, targets_for
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES

COMPILING.speaks = False
loss = LOSSES.make(sys.argv[1])
for rows in (150, 50_000):  # at once, and as more data are
    X = np.random.default_rng(1).normal(size=(rows, 9))
    bmrm.fit(X, targets_for(loss, rows), loss=sys.argv[1], groups=groups_for(loss, rows))
print(COMPILING.kernels)
"""


@pytest.mark.nightly
def test_of_a_loss_what_a_fit_of_default_settings_compiles_and_no_more(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(cache, *command):
        inside = environment | {"NUMBA_CACHE_DIR": str(tmp_path / cache)}
        command = [sys.executable, *command]
        return subprocess.run(command, env=inside, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    cold = {loss: int(run(f"cold {loss}", "-c", FIT, loss)) for loss in ("hinge", "least_squares")}
    said = run("warm", "-m", "bmrm.cli", "warm", "hinge", "least_squares", "--processes", "2")
    kernels = int(re.search(r"^(\d+) kernels compiled for 2 losses", said, re.MULTILINE)[1])
    assert max(cold.values()) <= kernels <= sum(cold.values())
    for loss in cold:
        assert int(run("warm", "-c", FIT, loss)) == 0
