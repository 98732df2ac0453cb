"""A sample of damaged and hostile files at every door; `python -m tests.mutations` tries many."""

import sys

import numpy as np
import pytest

from tests import mutations
from tests.mutations import DOORS, run

WORKER = """#!{python}
import json, os, signal, sys, time
folder, seed, first, inputs, only = sys.argv[4:]
for k in range(int(first), int(first) + int(inputs)):
    print(json.dumps({{"at": k, "door": "d"}}), flush=True)
    if k == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if k == 5:
        print(json.dumps({{"at": k, "door": "d", "fault": "an error"}}), flush=True)
    if k == 6:
        time.sleep(60)
"""


def test_no_error_but_ours_no_crash_and_no_hang():
    assert run(5 * len(DOORS), seed=int(np.random.default_rng().integers(2**31))) == []


@pytest.mark.nightly
def test_nor_of_many():
    assert run(100 * len(DOORS), seed=20) == []


def test_a_crash_an_error_and_a_hang_are_found(monkeypatch, tmp_path):
    """The watch itself: it goes on behind the input."""
    script = tmp_path / "worker"
    script.write_text(WORKER.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(mutations, "PATIENCE", 2.0)
    found = list(mutations._watched("folder", 0, 0, 9, ""))
    assert found == [(2, "d", "the process ended with -11"), (5, "d", "an error"), (6, "d", "not back after 2.0 s")]
