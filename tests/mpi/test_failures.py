"""What the user sees when a rank dies, reads bad data, or is interrupted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.mpi.dying import SOLVER as DYING
from tests.mpi.launch import ROOT, launch, mpirun, work

pytestmark = pytest.mark.mpi

CONFIG = """
schema: 2
data: {train: "part-{rank}.svm", bias: none}
loss: hinge
regularizer: {name: l2, lambda: 1.0e-9}
solver: {name: bundle, tolerance: 1.0e-12, max_iterations: 1000000}
output: {directory: out}
"""


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with a config that runs for long and three shards."""
    random = np.random.default_rng(0)
    for rank in range(3):
        X = random.normal(size=(500, 300))
        lines = (f"{random.choice([-1, 1])} " + " ".join(f"{j + 1}:{x:.3g}" for j, x in enumerate(row)) for row in X)
        (tmp_path / f"part-{rank}.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def test_a_slip_in_an_index_is_refused_by_the_entries_of_all_ranks(shards):
    for rank in range(3):
        (shards / f"part-{rank}.svm").write_text("1 1:1 2:1\n-1 2:1\n")
    (shards / "part-1.svm").write_text("1 1:1\n-1 2:1 5000000:1\n")
    done = work(3, "bmrm.run", "config.yaml", cwd=shards)
    assert done.returncode == 2
    assert done.stderr.count("5000000 features, but all rows have 9 entries") == 1
    words = ["--set", "solver={name: dual_coordinate, max_iterations: 1}", "--set", "data.dimension=5000000"]
    assert work(3, "bmrm.run", "config.yaml", *words, cwd=shards).returncode in (0, 3)


def test_a_missing_shard_ends_all_with_status_two(shards):
    (shards / "part-1.svm").unlink()
    done = work(3, "bmrm.run", "config.yaml", cwd=shards)
    assert done.returncode == 2
    assert done.stderr.count("part-1.svm") == 1
    assert "killed" not in done.stderr


LOSS = """
from dataclasses import dataclass
import numpy as np
import bmrm

@dataclass(frozen=True)
class Ramp(bmrm.MarginLoss):
    def value(self, f, y):
        return np.clip(1.0 - y * f, 0.0, 1.0)
    def slope(self, f, y):
        return np.where((y * f < 1.0) & (y * f > 0.0), -y, 0.0)
"""


def test_a_wrong_loss_of_the_users_is_reported_once(shards):
    (shards / "my_losses.py").write_text(LOSS)
    done = work(3, "bmrm.run", "config.yaml", "--set", "loss=my_losses:Ramp", cwd=shards)
    assert done.returncode == 2
    assert "killed" not in done.stderr
    assert done.stderr.count("convexity: at f = ") == 1
    assert not (shards / "out").exists()


def start(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [mpirun(), "-n", "3", sys.executable, "-m", "bmrm.run", "config.yaml"]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ranks_of(launcher: int) -> list[int]:
    """Process ids of the Python ranks below the launcher."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])

    def below(process: int) -> bool:
        while process > 1 and process in parents:
            process = parents[process]
            if process == launcher:
                return True
        return False

    return sorted(p for p in parents if below(p) and b"bmrm.run" in commands[p] and b"mpirun" not in commands[p])


def wait_until_training(job: subprocess.Popen[str]) -> list[int]:
    """The ranks, once the first line of an iteration is out."""
    assert job.stdout is not None
    assert any(line.startswith("iteration") for line in iter(job.stdout.readline, "")), "the job ended before it began"
    return [p for p in ranks_of(job.pid) if b"proxy" not in Path(f"/proc/{p}/cmdline").read_bytes()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("killed", [0, 2])
def test_a_killed_rank_ends_the_job_and_is_named(shards, killed):
    config = (shards / "config.yaml").read_text()
    (shards / "config.yaml").write_text(config.replace("out}", f"out, checkpoint_every: {1e-3 if killed else 1e3}}}"))
    job = start(shards)
    ranks = wait_until_training(job)
    assert len(ranks) == 3
    os.kill(ranks[killed], signal.SIGKILL)
    begin = time.perf_counter()
    output, _ = job.communicate(timeout=10.0)
    assert time.perf_counter() - begin < 10.0
    assert job.returncode != 0
    assert not list(shards.glob("out/*.json"))
    for rank in ranks:
        assert not Path(f"/proc/{rank}").exists()
    assert output.count("was killed or has crashed") == 1, output
    assert f"bmrm: rank {killed} (process {ranks[killed]} on " in output
    there = "--resume goes on from out/checkpoint.npz" if killed else "no checkpoint was there yet to --resume from"
    assert there in output
    if killed:
        done = work(3, "bmrm.run", "config.yaml", "--resume", "--set", "solver.time_limit=0.01", cwd=shards)
        assert done.returncode == 3, done.stderr
        assert "resuming" in done.stderr or "checkpoint" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ctrl_c_writes_the_best_point_and_ends_with_status_three(shards):
    job = start(shards)
    ranks = wait_until_training(job)
    for rank in ranks:
        os.kill(rank, signal.SIGINT)
    output, _ = job.communicate(timeout=30.0)
    assert job.returncode == 3, output
    assert "INTERRUPTED" in output
    assert "killed" not in output
    assert (shards / "out" / "model.npz").exists()


@pytest.mark.parametrize(
    ("method", "how"),
    [
        *((method, "fails") for method in DYING),
        *(pytest.param(method, "dies", marks=[pytest.mark.nightly] * (method != "gather")) for method in DYING),
    ],
)
def test_a_rank_that_cannot_answer_a_request_ends_the_job(method, how):
    done = launch(3, "-m", "tests.mpi.dying", method, how, timeout=60.0)
    assert done.returncode != 0
    assert "ended well" not in done.stdout
    if how == "fails":
        assert done.returncode == 1
        assert done.stderr.count("bmrm: rank 2 failed:") == 1
        assert "no room for rows" in done.stderr


def test_what_all_ranks_decide_in_reading_is_said_once(tmp_path):
    for rank in range(3):
        rows = "".join(f"{13 * rank + k},{k % 5},{k % 2}\n" for k in range(13))
        (tmp_path / f"part-{rank}.csv").write_text(
            f",a,y\n{rows}" if rank else f",a,y\n{rows}".replace(",a", "id,a", 1)
        )
    config = CONFIG.replace(".svm", ".csv").replace('{rank}.csv"', '{rank}.csv", ignore: [id]')
    (tmp_path / "config.yaml").write_text(config.replace("1000000", "9"))
    done = work(3, "bmrm.run", "config.yaml", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr.count("data.train: the first column, which has no name, is left out") == 1
    assert "1 features" not in done.stderr
    (tmp_path / "config.yaml").write_text(
        config.replace("ignore: [id]", "header: true, format: {name: csv, header: false}")
    )
    done = work(3, "bmrm.run", "config.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("data.header is True, but data.format has header: False") == 1
