"""What the pages and the help say of the command line is so."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from bmrm.cli import COMMANDS, parse, parser
from bmrm.cli._core.reference import markdown
from tests.pages import ROOT, blocks

PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def commands(lines):
    """The words behind `bmrm` of each line that calls it, up to a pipe, a redirection or a comment."""
    for line in lines:
        words = shlex.split(line, comments=True)
        while "bmrm" in words:
            words = words[words.index("bmrm") + 1 :]
            end = next((k for k, word in enumerate(words) if word in ("|", "||", ">", ">>")), len(words))
            yield words[:end]
            words = words[end:]


SHOWN = [
    words
    for page in PAGES
    for block in blocks(page, "console")
    for words in commands(line[2:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ "))
]


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_commands_of_the_pages_are_commands(words):
    if words not in (["--version"], ["--help"]):
        assert parse(words).command in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_the_help_are_commands(command):
    subs = next(action for action in parser([command])._actions if action.dest == "==SUPPRESS==")
    lines = subs.choices[command].epilog.removeprefix("examples:\n").splitlines()
    found = list(commands(lines))
    assert len(found) >= len(lines)
    for words in found:
        if "--help" not in words:
            assert parse(words).command == command


def test_the_reference_has_every_option():
    page = markdown()
    assert [f"bmrm {name}" for name in COMMANDS] == re.findall(r"^## (.*)$", page, re.MULTILINE)
    for flag in ("--loss", "--probabilities", "--top COUNT", "--folds COUNT", "--solver.absolute_tolerance"):
        assert flag in page
    assert "%(default)" not in page
    assert "<!-- table: commands -->" in (ROOT / "docs/command-line.md").read_text()


def test_a_first_walk(folder, bmrm_command):
    """Look, write a config, train, show, predict from a pipe, train again, compare: as the page goes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3)).round(3)
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * random.normal(size=120) > 0, "spam", "ham")
    lines = [",".join(map(str, x)) + f",{a}\n" for x, a in zip(X.tolist(), y)]
    Path("train.csv").write_text("u,v,w,said\n" + "".join(lines[:90]))
    Path("test.csv").write_text("u,v,w,said\n" + "".join(lines[90:]))

    def ran(*words, **options):
        done = bmrm_command(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "ham: " in ran("info", "train.csv")
    assert "train.yaml is written" in ran("init", "train.csv")
    assert "test.csv" in Path("train.yaml").read_text()
    ran("train", "train.yaml", "--quiet")
    assert "weights for spam" in ran("show", "runs/train")
    rows = "u,v,w\n" + "".join(",".join(map(str, x)) + "\n" for x in X[90:].tolist())
    labels = np.array(ran("predict", "runs/train", "-", "--labels", stdin=rows).split())
    assert (labels == y[90:]).mean() > 0.8
    ran("train", "train.yaml", "--loss", "logistic", "--output", "runs/other", "--quiet")
    assert "loss.name" in ran("compare", "runs/train", "runs/other", "--folds", "3")
