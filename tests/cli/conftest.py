"""Fixtures of the tests of the command line."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BMRM = Path(sys.executable).parent / "bmrm"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that one stands in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rows(folder):
    """train.svm and test.svm: 60 and 20 rows of 5 features, two classes that overlap."""
    random = np.random.default_rng(2)
    X = random.normal(size=(80, 5)).round(6)
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0, 1.0] + random.normal(size=80) > 0, 1, -1)
    lines = [f"{a} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x)) for x, a in zip(X.tolist(), y)]
    (folder / "train.svm").write_text("".join(f"{line}\n" for line in lines[:60]))
    (folder / "test.svm").write_text("".join(f"{line}\n" for line in lines[60:]))
    return X, y


@pytest.fixture
def bmrm_command(folder):
    """Runs the installed command in that folder, as a user does."""

    def run(*words, stdin=None, **options):
        return subprocess.run(
            [str(BMRM), *words], cwd=folder, input=stdin, capture_output=True, text=True, timeout=300, **options
        )

    return run
