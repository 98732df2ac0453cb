"""Files of the working folder are data: none of them runs unless a plug-in in it is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.cli import main
from bmrm.registry import Registry
from tests.mpi.launch import mpirun

BMRM = str(Path(sys.executable).parent / "bmrm")
ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = ("colorama", "bottleneck", "numexpr", "psutil", "IPython", "brotli", "orjson", "torch", "cupy", "uarray")
"""What the libraries below ask for and do without, whether installed here or not."""
INSTALLED = ("mpi4py", "numpy", "scipy", "yaml", "rich", "numba", "pandas", "pyarrow", "matplotlib", "sklearn", "shtab")
STANDARD = ("typing", "argparse", "json", "multiprocessing", "pickle", "linecache", "selectors", "runpy")
LOSS = """
from dataclasses import dataclass
import bmrm
import my_helper

@dataclass(frozen=True)
class Squares(bmrm.RegressionLoss):
    def value(self, f, y):
        return 0.5 * (f - y) ** 2
    def slope(self, f, y):
        return f - y
"""

CONFIG = """
schema: 2
data: {train: train.svm, bias: none}
loss: hinge
regularizer: {name: l2, lambda: 0.1}
solver: {tolerance: 0.1}
output: {directory: warmed}
"""


@pytest.fixture
def trapped(folder, rows):
    """Runs a command among modules that leave their names behind; returns what ran, and the result."""
    for name in (*OPTIONAL, *INSTALLED, *STANDARD):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write('{name} ')\n")
    (folder / "evil-1.0.dist-info").mkdir()
    (folder / "evil-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (folder / "evil-1.0.dist-info" / "entry_points.txt").write_text("[bmrm.losses]\nevil = torch:Evil\n")
    (folder / "my_losses.py").write_text(LOSS)
    (folder / "my_helper.py").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*command):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
        ran = folder / "ran"
        return ran.read_text() if ran.exists() else "", done

    return run


TRAIN = ("train", "train.svm", "--output", "out", "--overwrite", "--quiet")


@pytest.mark.parametrize(
    "command",
    [
        (BMRM, *TRAIN),
        (sys.executable, "-m", "bmrm.cli", *TRAIN),
        (sys.executable, "-m", "bmrm.run", "one.yaml", "--set", "output.overwrite=true"),
        (sys.executable, "-mbmrm.cli", "train", "sklearn:breast_cancer", "--output", "out", "--quiet"),
        (BMRM, "info"),
        (BMRM, "losses"),
        (BMRM, "warm", "one.yaml"),
    ],
    ids=lambda command: " ".join(command[1:4]),
)
def test_no_file_of_the_working_folder_runs(trapped, folder, command):
    (folder / "one.yaml").write_text(CONFIG)
    ran, done = trapped(*command)
    assert (ran, done.returncode) == ("", 0), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", ["show out", "predict out test.svm", "evaluate out test.svm", "report out"])
def test_nor_with_a_finished_run(trapped, folder, words):
    assert main([*TRAIN]) == 0
    ran, done = trapped(BMRM, *words.split())
    assert (ran, done.returncode) == ("", 0), done.stderr


@pytest.mark.mpi
def test_nor_on_two_ranks_that_train_a_plug_in_of_the_folder(trapped, folder):
    ranks = (mpirun(), "-n", "2", sys.executable)
    ran, done = trapped(*ranks, "-m", "bmrm.cli", *TRAIN, "--loss", "my_losses:Squares", "--data.share_rows", "false")
    assert (ran, done.returncode) == ("", 0), done.stderr


def test_modules_of_the_folder_are_found_while_a_plug_in_is_imported(folder, monkeypatch):
    (folder / "my_plug_ins.py").write_text(LOSS.replace("my_helper", "my_other_helper"))
    (folder / "my_other_helper.py").write_text("")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(folder))])
    before = list(sys.path)
    entry = Registry("loss", "bmrm.losses").get("my_plug_ins:Squares")
    assert entry.cls.__name__ == "Squares"
    assert sys.path == before


def test_what_a_plug_in_does_to_the_path_stays(folder, monkeypatch):
    (folder / "my_path_losses.py").write_text("import sys\nsys.path.insert(0, '/nowhere')\n" + LOSS)
    (folder / "my_helper.py").write_text("")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.path)
    Registry("loss", "bmrm.losses").get("my_path_losses:Squares")
    assert sys.path == ["/nowhere", *before]
