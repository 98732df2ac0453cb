"""Job files, with stand-ins for what only a cluster has: they train, and go on after they were killed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mpi_examples.prepare import HERE
from tests.mpi.launch import environment, mpirun
from tests.pages import blocks_of

JOBS = HERE / "jobs"
LAUNCHER = """#!/bin/bash
while [[ "$1" == -* ]]; do [[ "$1" == *=* || "$1" == --cpu-bind* ]] && shift || shift 2; done
exec {mpirun} -n 2 "$@"
"""
CONFIG = {
    "schema": 2,
    "data": {"train": "sklearn:breast_cancer", "scale": "standardize"},
    "loss": "hinge",
    "regularizer": {"name": "l2", "lambda": 1e-3},
    "solver": {"name": "bundle", "tolerance": 1e-5},
    "output": {"directory": "runs/job"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the kernels stay that a job compiles."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "bmrm" / "bin").mkdir(parents=True)
    (folder / "bmrm" / "bin" / "activate").write_text("")
    return folder


@pytest.fixture
def cluster(tmp_path, home):
    """A folder with a config, and stand-ins for the scheduler's commands, which start two ranks here."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("srun", "mpirun"):
        (tools / name).write_text(LAUNCHER.format(mpirun=shlex.quote(mpirun())))
    (tools / "module").write_text("#!/bin/bash\n[[ $* == 'load openmpi' ]]\n")
    (tools / "python").write_text(f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    own = {"NUMBA_CACHE_DIR": str(home / ".cache" / "bmrm-kernels"), "MPLCONFIGDIR": str(home / "plots")}
    own |= {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "PBS_O_WORKDIR": str(tmp_path)}
    return tmp_path, environment() | own


def begun(folder, env):
    """What a job that was killed has left: a checkpoint after four iterations."""
    few = ["--set", "solver.max_iterations=4"]
    done = subprocess.run(
        [sys.executable, "-m", "bmrm.run", "config.yaml", *few], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert (folder / "runs" / "job" / "checkpoint.npz").exists()


def ended(folder):
    """On two ranks, after what the earlier run had done, and with nothing left of that."""
    told = json.loads((folder / "runs" / "job" / "summary.json").read_text())
    assert told["status"] == "CONVERGED"
    assert told["ranks"] == 2
    assert told["seconds"]["earlier"] > 0.0
    assert not (folder / "runs" / "job" / "checkpoint.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["job.slurm", "job.pbs"])
def test_a_script_goes_on_from_the_checkpoint(name, cluster):
    folder, env = cluster
    begun(folder, env)
    script = (JOBS / name).read_text()
    done = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ended(folder)


@pytest.mark.slow
def test_the_command_of_the_mpi_job_goes_on_from_the_checkpoint(cluster):
    """With ranks for the slots of all workers, and data that these see."""
    folder, env = cluster
    job = yaml.safe_load((JOBS / "mpijob.yaml").read_text())["spec"]
    replicas = job["mpiReplicaSpecs"]
    launcher = replicas["Launcher"]["template"]["spec"]["containers"][0]
    (worker,) = replicas["Worker"]["template"]["spec"]["containers"]
    command = [*launcher["command"], *launcher["args"]]
    assert int(command[command.index("-n") + 1]) == replicas["Worker"]["replicas"] * job["slotsPerWorker"]
    (config,) = [word for word in command if word.endswith(".yaml")]
    assert Path(config).parent == Path(worker["volumeMounts"][0]["mountPath"])
    begun(folder, env)
    local = [word if word != config else "config.yaml" for word in command]
    done = subprocess.run(local, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ended(folder)


def test_the_page_has_these_files():
    texts = {block.text.strip() for block in blocks_of("docs/clusters.md")}
    for name in ("job.slurm", "job.pbs", "mpijob.yaml"):
        assert (JOBS / name).read_text().strip() in texts, name
