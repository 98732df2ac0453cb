"""Whether the programs that a page names know the options that it gives them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tests.pages import ROOT

OPTION = re.compile(r"--?[a-zA-Z][\w.-]*")
LAUNCHERS = ("srun", "mpirun")


def unknown_options(words: Sequence[str]) -> list[str]:
    """Those of a command that its program does not have; none of programs of other people's machines."""
    words = list(words)
    if words and Path(words[0]).name in LAUNCHERS:  # its own options are those of the cluster's MPI
        start = next(k for k, word in enumerate(words) if word in ("python", "bmrm"))
        words = words[start:]
    if not words:
        return []
    return KNOWN.get(Path(words[0]).name, lambda rest: [])(words[1:])


def _targets(words: list[str]) -> list[str]:
    return [word for word in words if f"\n{word}:" not in (ROOT / "Makefile").read_text()]


def _python(words: list[str]) -> list[str]:
    if words[:1] != ["-m"] or words[1] == "venv":
        return []
    return _of_help(("-m", words[1]), words[2:])


def _pip(words: list[str]) -> list[str]:
    extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    asked = [(word, found[1].split(",")) for word in words if (found := re.fullmatch(r"\.\[(.*)\]", word))]
    missing = [word for word, names in asked if not all(f"\n{name} = " in extras for name in names)]
    return missing + _of_help(("-m", "pip", words[0]), words[1:])


def _of_help(program: tuple[str, ...], words: list[str]) -> list[str]:
    known = set(OPTION.findall(_help(program)))
    return [word for word in words if OPTION.fullmatch(word.partition("=")[0]) and word.partition("=")[0] not in known]


@cache
def _help(program: tuple[str, ...]) -> str:
    done = subprocess.run([sys.executable, *program, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


KNOWN: dict[str, Callable[[list[str]], list[str]]] = {
    "make": _targets,
    "python": _python,
    "python3": _python,
    "pip": _pip,
    "pytest": lambda words: _of_help(("-m", "pytest"), words),
    "bmrm": lambda words: _of_help(("-m", "bmrm.cli", words[0]), words[1:]),
}
