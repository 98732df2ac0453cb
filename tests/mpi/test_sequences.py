"""Sentences over several ranks: one dictionary, whole sentences, the same model and measures."""

import json

import numpy as np
import pytest

from bmrm.app.model import load_model
from tests.mpi.launch import work

pytestmark = pytest.mark.mpi

CONFIG = """
data:
  train: "{train}"
  test: test.txt
  format: {{name: conll, templates: "w=%x[0,0]\\nc=%x[-1,0]/%x[0,0]", {options}}}
loss: {loss}
regularizer: {{name: l2, lambda: 0.01}}
solver: {{tolerance: 1.0e-8}}
output: {{directory: {out}}}
"""


def sentences(seed, count):
    """Words whose label follows from themselves and from the word before, most of the time."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        words = [f"w{k}" for k in rng.integers(0, 12, size=int(rng.integers(1, 9)))]
        for before, word in zip(["", *words], words, strict=False):
            kind = (int(word[1:]) + (before == "w3")) % 3 if rng.random() < 0.9 else 0
            lines.append(f"{word} {('O', 'B-A', 'I-A')[kind]}\n")
        lines.append("\n")
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sequences")
    lines = sentences(0, 60)
    (path / "train.txt").write_text("".join(lines))
    middle = next(k for k in range(len(lines) // 2, len(lines)) if lines[k] == "\n") + 1
    (path / "part-0.txt").write_text("".join(lines[:middle]))
    (path / "part-1.txt").write_text("".join(lines[middle:]))
    (path / "test.txt").write_text("".join(sentences(1, 20)))
    return path


def run(folder, ranks, train, loss, options=""):
    out = folder / f"{loss}-{ranks}-{train[:4]}"
    (folder / "config.yaml").write_text(CONFIG.format(train=train, loss=loss, options=options, out=out))
    done = work(ranks, "bmrm.run", "config.yaml", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text()), load_model(out / "model.npz")


@pytest.mark.parametrize(
    ("loss", "options", "others"),
    [
        ("chain_crf", "min_count: 2", [(3, "train.txt"), (2, "part-*.txt"), (3, "part-*.txt")]),
        ("chain_margin", "hash_bits: 5", [(2, "train.txt")]),
        ("chain_scaled_margin", "", [(2, "part-*.txt")]),
    ],
)
def test_the_same_on_any_number_of_ranks(folder, loss, options, others):
    one, model = run(folder, 1, "train.txt", loss, options)
    assert one["metrics"]["test"]["chunk_f1"] > 0.5
    for ranks, train in others:
        other, copy = run(folder, ranks, train, loss, options)
        assert other["objective"] == pytest.approx(one["objective"], rel=1e-7)
        assert copy.reader.vocabulary.names == model.reader.vocabulary.names
        np.testing.assert_allclose(copy.arrays["transitions"], model.arrays["transitions"], atol=0.02)
        assert other["metrics"]["test"]["chunk_f1"] == pytest.approx(one["metrics"]["test"]["chunk_f1"], abs=0.02)
