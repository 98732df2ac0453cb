"""A rank that stands still ends the job, with a message that names it; one that computes for long does not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mpi.launch import ROOT, launch, mpirun, work
from tests.mpi.silent import CALLS
from tests.mpi.test_failures import shards, start, wait_until_training

__all__ = ["shards"]
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


def ended(job: subprocess.Popen[str], processes: list[int], stopped: int, timeout: float) -> str:
    """What the job says after one of its ranks is stopped."""
    os.kill(processes[stopped], signal.SIGSTOP)
    begin = time.perf_counter()
    try:
        output, _ = job.communicate(timeout=60.0)
    finally:
        job.kill()
    assert time.perf_counter() - begin >= timeout - 0.5  # its last sign of life was a moment before
    assert job.returncode == 1
    while any(Path(f"/proc/{process}").exists() for process in processes):  # the launcher kills what stands still
        assert time.perf_counter() - begin < 60.0
        time.sleep(0.1)
    assert f"rank {stopped} (process {processes[stopped]} on " in output
    assert "has not answered for 2 s (mpi.timeout)" in output
    assert output.count("not answered") == 1
    return output


@pytest.mark.parametrize(
    ("call", "stopped"),
    [("sum", 0)] + [pytest.param(call, 2, marks=[pytest.mark.nightly] if call != "gather" else []) for call in CALLS],
)
def test_a_rank_that_stands_still_is_named_whatever_the_others_wait_for(call, stopped):
    command = [mpirun(), "-n", "3", sys.executable, "-m", "tests.mpi.silent", call, "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    processes = [int(word) for word in job.stdout.readline().split()]
    assert len(processes) == 3
    ended(job, processes, stopped, 2.0)


def test_a_rank_that_computes_for_long_is_not_silent():
    done = launch(3, "-m", "tests.mpi.silent", "busy", "2")
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    assert "not answered" not in done.stderr


def test_training_ends_when_a_rank_stands_still(shards):
    config = shards / "config.yaml"
    config.write_text(config.read_text() + "mpi: {timeout: 2}\n")
    job = start(shards)
    processes = wait_until_training(job)
    assert len(processes) == 3
    assert "killed" not in ended(job, processes, 1, 2.0)
    assert not list(shards.glob("out/*"))


def test_a_wrong_timeout_is_refused(shards):
    done = work(2, "bmrm.run", "config.yaml", "--set", "mpi.timeout=0", cwd=shards)
    assert done.returncode == 2
    assert "mpi.timeout" in done.stderr
