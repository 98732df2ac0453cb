"""The examples of the page on estimators run by themselves, and its table of names is complete."""

import subprocess
import sys

import pytest

from bmrm import estimators
from tests.pages import ROOT, blocks

PAGE = "docs/estimators.md"
EXAMPLES = blocks(PAGE, "python")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_by_itself(number, tmp_path):
    (tmp_path / "example.py").write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, "-W", "error", "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_class_is_described():
    page = (ROOT / PAGE).read_text()
    for name in estimators.__all__:
        assert f"| `{name}` |" in page
        parameters = set(getattr(estimators, name)().get_params())
        assert {p for p in parameters if f"`{p}`" not in page} <= {"templates"}
