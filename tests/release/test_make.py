"""What `make` would do, as `make -n` tells."""

import shutil
import subprocess

import pytest

from release.project import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


def extras(target, folder):
    """What pip would install of the package for a target, in an environment that is not there yet."""
    command = ["make", "--dry-run", target, f"VENV={folder / 'environment'}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [line.split("'.[")[1].split("]")[0].split(",") for line in said.splitlines() if "'.[" in line]
    return {name for names in found for name in names}


def test_a_run_installs_what_it_runs(tmp_path):
    assert extras("run", tmp_path) == {"mpirun"}


@pytest.mark.parametrize("target", ["install", "lint", "test-quick", "docs"])
def test_all_else_installs_the_rest_too(tmp_path, target):
    assert extras(target, tmp_path) == {"mpirun", "dev", "docs"}
