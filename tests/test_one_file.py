"""A new plug-in is one file: dropped into its folder, it is everywhere where plug-ins are listed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LOSS = '''
"""The absolute value, cubed."""

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses.base import RegressionLoss
from bmrm.registry import parameter


@register("absolute_cube")
@dataclass(frozen=True)
class AbsoluteCube(RegressionLoss):
    """scale |f - y|^3."""

    formula = "scale |f - y|^3"
    smooth = True
    scale: float = parameter(1.0, above=0.0, doc="factor", example=0.5)

    def value(self, f, y):
        return self.scale * np.abs(f - y) ** 3

    def slope(self, f, y):
        return 3.0 * self.scale * (f - y) * np.abs(f - y)
'''

BEGIN = "import sys, bmrm.losses; bmrm.losses.__path__.append(sys.argv[1]); "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "absolute_cube.py").write_text(LOSS)
    return tmp_path


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BEGIN + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_it_is_in_the_table_of_the_command(folder):
    done = python("from bmrm.cli import main; sys.exit(main(['losses']))", folder)
    assert done.returncode == 0, done.stderr
    assert "absolute_cube" in done.stdout


def test_it_is_in_the_documentation_of_the_config(folder):
    done = python("from bmrm.app.config.schema import markdown; print(markdown())", folder)
    assert done.returncode == 0, done.stderr
    assert "`absolute_cube`" in done.stdout
    assert "`scale`, default `1`" in done.stdout


def test_a_config_can_name_it_and_its_options_are_checked(folder, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        f"schema: 2\ndata: {{train: 'sklearn:diabetes', scale: standardize, bias: none}}\n"
        f"loss: {{name: absolute_cube, scale: 0.001}}\nregularizer: {{name: l2, lambda: 1.0}}\n"
        f"output: {{directory: {tmp_path / 'out'}}}\n"
    )
    run = "from bmrm.run import main; sys.exit(main(sys.argv[2:]))"
    done = python(run, folder, config, "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "model.npz").exists()
    wrong = python(run, folder, config, "--set", "loss.scale=-1")
    assert wrong.returncode == 2
    assert "scale" in wrong.stderr
    misspelt = python(run, folder, config, "--set", "loss.name=absolute_cub")
    assert misspelt.returncode == 2
    assert "absolute_cube" in misspelt.stderr


def test_the_conformance_tests_run_over_it(folder):
    code = (
        "import pytest; sys.exit(pytest.main(['tests/conformance/test_losses.py', '-v', '-k', 'AbsoluteCube',"
        " '-p', 'no:cacheprovider']))"
    )
    done = python(code, folder)
    assert done.returncode == 0, done.stdout
    ran = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert any("test_laws_and_properties_hold[" in line and "AbsoluteCube" in line for line in ran), done.stdout
