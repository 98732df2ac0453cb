"""`bmrm completion`: scripts that the shells take, and what they complete."""

import shutil
import subprocess

import pytest

from bmrm.cli import main

pytest.importorskip("shtab")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Writes the script for a shell; returns its path."""
    folder = tmp_path_factory.mktemp("completion")

    def write(shell, capsys):
        assert main(["completion", shell]) == 0
        path = folder / f"bmrm.{shell}"
        path.write_text(capsys.readouterr().out)
        return path

    return write


TRY = """
source {path}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_shtab_bmrm
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bmrm tr", ["train"]),
        ("bmrm train --loss hin", ["hinge"]),
        ("bmrm train x.svm --tol", ["--tolerance"]),
        ("bmrm train --bias f", ["free"]),
        ("bmrm train --solver.hess", ["--solver.hessian"]),
        ("bmrm train --format cr", ["crfsuite"]),
        ("bmrm solvers new", ["newton"]),
        ("bmrm losses quant", ["quantile"]),
        ("bmrm completion z", ["zsh"]),
    ],
)
def test_bash_completes(words, expected, script, capsys):
    path = script("bash", capsys)
    done = subprocess.run(
        ["bash", "-c", TRY.format(path=path, words=words)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_knows_the_commands(shell, script, capsys):
    path = script(shell, capsys)
    text = path.read_text()
    assert all(word in text for word in ("predict", "squared_hinge", "max_planes" if shell != "fish" else "predict"))
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", str(path)], capture_output=True, timeout=60).returncode == 0


def test_another_shell_is_one_line(capsys):
    assert main(["completion", "zhs"]) == 2
    assert "did you mean 'zsh'" in capsys.readouterr().err
