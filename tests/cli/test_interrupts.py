"""Ctrl-C at any import, or in the midst of the work: status 130 and at most one line."""

import signal
import subprocess
import sys

import pytest

from bmrm.cli import main

PROGRAM = """
import os, signal, sys

class Finder:
    count = 0
    def find_spec(self, name, path=None, target=None):
        Finder.count += 1
        if Finder.count == AT:
            os.kill(os.getpid(), signal.SIGINT)

AT = int(sys.argv.pop())
from bmrm.cli import main
Finder.count = 0
sys.meta_path.insert(0, Finder())
sys.argv[0] = "bmrm"
sys.exit(main())
"""


def interrupted(at, *words):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words, str(at)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 130, (at, done.stderr)
    assert done.stderr in ("", "bmrm: interrupted before there was anything to write\n"), at
    assert done.stdout == "", at


@pytest.mark.parametrize("at", [1, 60, 400])
def test_ctrl_c_at_an_import_is_no_traceback(folder, rows, at):
    interrupted(at, "train", "train.svm", "--output", "out", "--quiet")
    assert not (folder / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("words", ["train train.svm --output other --quiet", "show out", "predict out test.svm"])
def test_nor_at_others(folder, rows, words):
    assert main(["train", "train.svm", "--output", "out", "--quiet"]) == 0
    for at in (3, 20, 110, 160, 230, 330):
        interrupted(at, *words.split())


@pytest.mark.slow
def test_nor_with_the_module_of_runs(folder, rows):
    assert main(["train", "train.svm", "--output", "out", "--quiet"]) == 0
    program = PROGRAM.replace("from bmrm.cli import main\n", "import runpy, bmrm\n")
    program = program.replace("sys.exit(main())", 'runpy.run_module("bmrm.run", run_name="__main__", alter_sys=True)')
    for at in (15, 80, 200, 400):
        words = ["out/config.yaml", "--set", "output.directory=other", str(at)]
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=300)
        assert (done.returncode, "Traceback" in done.stderr) == (130, False), (at, done.stderr)


def test_a_host_keeps_its_handler(folder, rows):
    """Calls of `main` from Python leave signals as they are."""
    before = signal.getsignal(signal.SIGINT)
    assert main(["train", "train.svm", "--output", "out", "--quiet"]) == 0
    assert signal.getsignal(signal.SIGINT) is before
