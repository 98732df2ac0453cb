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
schema: 1
data: {train: "synthetic:sparse_binary?rows=300&features=40"}
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


@pytest.mark.slow
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
