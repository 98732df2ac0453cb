"""`bmrm completion`: scripts that the shells take, and what they complete."""

import os
import pty
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

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


CASES = [
    ("bmrm tr", ["train"]),
    ("bmrm train --loss hin", ["hinge"]),
    ("bmrm train x.svm --tol", ["--tolerance"]),
    ("bmrm train --bias f", ["free"]),
    ("bmrm train --solver.hess", ["--solver.hessian"]),
    ("bmrm train --format cr", ["crfsuite"]),
    ("bmrm solvers new", ["newton"]),
    ("bmrm losses quant", ["quantile"]),
    ("bmrm completion z", ["zsh"]),
]
TRY = """
source {path}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_shtab_bmrm
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_completes(words, expected, script, capsys):
    path = script("bash", capsys)
    done = subprocess.run(
        ["bash", "-c", TRY.format(path=path, words=words)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == expected


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_fish_completes(words, expected, script, capsys):
    program = f"source {script('fish', capsys)}; complete -C '{words}'"
    done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, timeout=60)
    assert [line.split("\t")[0] for line in done.stdout.splitlines() if line] == expected


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_completes(script, capsys, tmp_path):
    (tmp_path / "_bmrm").write_text(script("zsh", capsys).read_text())
    with terminal(["zsh", "-f", "-i"], tmp_path) as (write, read_until):
        write(f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; print rea''dy\n")
        assert "ready" in read_until("ready\r\n")
        for words, expected in CASES:
            write(f"{words}\t")
            whole = f"{words.rpartition(' ')[0]} {expected[0]}"
            assert whole in read_until(whole)
            write("\x15")  # forget the line


@contextmanager
def terminal(command, home):
    """A shell in a terminal: a function that types, and one that reads until some text comes (ten seconds)."""
    ours, theirs = pty.openpty()
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "PS1": "> "}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=surroundings, cwd=home)

    def read_until(text):
        got, deadline = "", time.monotonic() + 10.0
        while text not in got and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                got += os.read(ours, 4096).decode(errors="replace")
        return got

    try:
        yield lambda text: os.write(ours, text.encode()), read_until
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


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
