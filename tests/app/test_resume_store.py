"""Rows of a store, read in each pass, planes whole or in slices: killed and stopped on 1, 2 and 3 ranks in turn."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from bmrm.cli import main as command
from bmrm.run import main
from tests.mpi.launch import mpirun
from tests.mpi.test_failures import ranks_of

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]
TOLERANCE = 1e-4
SILENCE = 2.0
"""`mpi.timeout`: seconds after which a rank that stands still ends the job."""


@pytest.fixture(params=[False, True], ids=["whole", "sliced"])
def settings(request, tmp_path, monkeypatch):
    """The config of a run of some seconds on a store, and the summary of that run."""
    monkeypatch.chdir(tmp_path)
    source = "synthetic:sparse_binary?rows=6000"
    assert command(["convert", source, "rows.store"]) == 0
    found = {
        "data": {"train": "rows.store", "format": {"name": "store", "stream": True}, "bias": "regularized"},
        "loss": "hinge",
        "regularizer": {"name": "l2", "lambda": 1e-5},
        "solver": {"name": "bundle", "tolerance": TOLERANCE, "threads": 1},
        "mpi": {"timeout": SILENCE, "slices": request.param},
        "output": {"directory": "whole", "checkpoint_every": 0.05},
    }
    Path("config.yaml").write_text(yaml.safe_dump(found))
    assert main(["config.yaml", "--quiet"]) == 0
    return summary("whole")


def summary(directory):
    return json.loads((Path(directory) / "summary.json").read_text())


def launched(ranks):
    words = [mpirun(), "-n", str(ranks), sys.executable, "-m", "bmrm.run", "config.yaml", "--quiet", "--resume"]
    words += ["--set", "output.directory=out"]
    return subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_checkpoint(job, begin):
    """Until this life has saved something, or is over."""
    file = Path("out/checkpoint.npz")
    while job.poll() is None:
        try:
            if file.stat().st_mtime > begin:
                return
        except OSError:
            pass
        time.sleep(0.02)


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_a_run_on_a_store_ends_as_if_nobody_had_killed_or_stopped_it(settings, times):
    dice, whole = random.Random(times), settings
    blows = 0
    while blows < times:
        ranks = 1 + blows % 3
        begin, job = time.time(), launched(ranks)
        wait_for_checkpoint(job, begin)
        time.sleep(dice.uniform(0.0, 0.3))
        if job.poll() is not None:
            assert job.returncode == 0, job.stdout.read()
            check(whole)
            shutil.rmtree("out")
            continue
        blows += 1
        if blows % 3 == 2:  # of two ranks
            python = [p for p in ranks_of(job.pid) if b"proxy" not in Path(f"/proc/{p}/cmdline").read_bytes()]
            assert len(python) == 2
            os.kill(python[-1], signal.SIGSTOP)
            output, _ = job.communicate(timeout=60.0)
            assert job.returncode == 1
            assert "has not answered for 2 s (mpi.timeout)" in output
        else:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
    job = launched(1 + times % 3)
    output, _ = job.communicate(timeout=300.0)
    assert job.returncode == 0, output
    check(whole)


def check(whole):
    found = summary("out")
    assert found["status"] == whole["status"] == "CONVERGED"
    assert found["objective"] == pytest.approx(whole["objective"], rel=TOLERANCE)
    assert found["lower_bound"] <= whole["objective"]
    assert whole["lower_bound"] <= found["objective"]
