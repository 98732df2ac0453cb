"""A launcher and an MPI library that do not know one another: one message, not as many jobs as ranks."""

import os
import subprocess
import sys

import pytest

from bmrm.mpi import launch as launching
from bmrm.mpi.launch import BUILD, LAUNCHERS, needed_mpirun, open_group
from bmrm.problem import InputError
from tests.mpi.launch import launch

CONFIG = "schema: 2\ndata: {train: 'sklearn:breast_cancer', bias: none}\nregularizer: {name: l2, lambda: 0.01}\n"
RUN = ("-m", "bmrm.run", "config.yaml", "--quiet", "--set", "output.directory=out")


def rank(folder, **told):
    """A process whose launcher has left these words in its environment."""
    (folder / "config.yaml").write_text(CONFIG)
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
    command = [sys.executable, *RUN]
    return subprocess.run(command, cwd=folder, env=environment | told, capture_output=True, text=True, timeout=120)


def test_without_a_launcher_a_process_is_alone(monkeypatch):
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    group = open_group()
    assert (group.size, group.rank) == (1, 0)


def test_the_launcher_beside_python_comes_first(tmp_path, monkeypatch):
    for folder in ("env", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mpirun").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    assert needed_mpirun() == str(tmp_path / "env" / "mpirun")
    (tmp_path / "env" / "mpirun").unlink()
    assert needed_mpirun() == str(tmp_path / "elsewhere" / "mpirun")
    (tmp_path / "elsewhere" / "mpirun").unlink()
    assert launching.mpirun() is None
    with pytest.raises(InputError, match=r"no mpirun found; pip install 'bmrm\[mpirun\]'"):
        needed_mpirun()


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("size", "number"),
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("MPI_LOCALNRANKS", "MPI_LOCALRANKID")],
)
def test_ranks_that_do_not_find_one_another_say_so_once(size, number, tmp_path):
    first, second = (rank(tmp_path, **{size: "4", number: k}) for k in ("0", "1"))
    assert first.returncode == second.returncode == 2
    assert first.stderr.startswith("bmrm: mpirun has started 4 processes that do not find one another")
    assert BUILD in first.stderr
    assert len(first.stderr.splitlines()) == 1
    assert second.stderr == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.mpi
def test_one_rank_is_a_job_of_one(tmp_path):
    done = rank(tmp_path, MPI_LOCALNRANKS="1", MPI_LOCALRANKID="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.mpi
def test_without_a_library_it_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = launch(2, *RUN, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("bmrm: mpi4py loads no MPI library (cannot load MPI library /nowhere/libmpi.so")
    assert "pip install 'bmrm[mpirun]'" in done.stderr
