"""The Python of README, pages and examples has no error in mypy and in pyright, as a user runs them."""

import json
import os
import subprocess
import sys

import pytest

from tests.docs.test_every_block import PAGES, runs
from tests.pages import ROOT, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.language == "python" and runs(block)]
EXAMPLES = sorted((ROOT / "mpi_examples").rglob("*.py"))
CALLS = """\
import numpy as np

import bmrm

X, y = np.eye(3), np.array([0, 1, 0])
model = bmrm.fit(X, y, regularizer=bmrm.L2(1e-3), bias="free", tolerance=1e-6, solver_options={"memory": 5})
gap: float = model.solution.relative_gap
lines: tuple[bmrm.Iteration, ...] = model.solution.history
other: bmrm.Model = bmrm.fit(X, y, loss={"name": "huber_hinge", "h": 0.5}, regularizer="l1", lam=1e-3, start=model)
l1, l2, both = bmrm.L1(1e-3), bmrm.L2(lam=1e-3), bmrm.ElasticNet(1e-3, l1_ratio=0.5)
numbers: tuple[float, float] = (l2.lam, both.l1_ratio)
estimator: bmrm.Classifier = bmrm.Classifier("hinge", alpha=1e-3).fit(X, y)
"""
WRONG = {
    "bmrm.fit(X, y, lam='1')": "lam",
    "bmrm.fit(X, y, max_iterations=1.5)": "max_iterations",
    "bmrm.fit(X, y, bias='nothing')": "nothing",
    "bmrm.fit(X, y, alhpa=1.0)": "alhpa",
    "bmrm.L2('1')": "float",
    "bmrm.L2(1.0, motor='cvxopt')": "motor",
    "bmrm.fit(X, y).solution.gaps": "gaps",
    "bmrm.fit(X, y, regularizer=3)": "Regularizer",
    "bmrm.Classifier(alpha='1')": "float",
    "bmrm.Ranker(solver=1.0)": "Solver",
}
"""Calls that a checker is to refuse, and a word of its message."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every block as a file, those of one page beside one another, and what they import."""
    folder = tmp_path_factory.mktemp("typed")
    for number, block in enumerate(BLOCKS):
        page = folder / block.page.replace("/", "_").removesuffix(".md")
        page.mkdir(exist_ok=True)
        (page / (block.title or f"block_{number}.py")).write_text(block.text)
    (folder / "calls").mkdir()
    (folder / "calls" / "right.py").write_text(CALLS)
    (folder / "calls" / "wrong.py").write_text(
        "import bmrm\n\nX, y = [[1.0], [2.0]], [0, 1]\n" + "\n".join(WRONG) + "\n"
    )
    return folder


def mypy(paths, folder):
    """Lines `file:line: error: ...`."""
    words = ["--ignore-missing-imports", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache" / "pages")]
    words += ["--config-file", os.devnull, "--follow-imports", "silent", *map(str, paths)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.splitlines()


def pyright(paths, folder):
    """Lines `file:line: ...` of its errors."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, paths)],
        cwd=folder,
        env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    return [f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found]


@pytest.mark.nightly
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_blocks_of_pages_have_no_type_error(checker, folder):
    pages = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    assert len(pages) > 5
    for page in pages:
        files = [path for path in sorted(page.glob("*.py")) if path.name != "wrong.py"]
        assert checker(files, page) == []


@pytest.mark.nightly
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_examples_have_no_type_error(checker, tmp_path):
    assert checker(EXAMPLES, tmp_path) == []


@pytest.mark.nightly
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_wrong_calls_are_type_errors(checker, folder):
    found = checker([folder / "calls" / "wrong.py"], folder)
    for number, (call, word) in enumerate(WRONG.items(), start=4):
        assert any(f"wrong.py:{number}:" in line and word in line for line in found), (call, found)
