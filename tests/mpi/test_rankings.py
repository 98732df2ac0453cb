"""Queries over several ranks: from a file to the measures, and what cannot be shared out."""

import gzip
import json

import numpy as np
import pytest

from bmrm.data.reading import read
from tests.mpi.launch import work

pytestmark = pytest.mark.mpi

CONFIG = """
data: {{train: {train}}}
loss: {loss}
regularizer: {{name: l2, lambda: 0.01}}
solver: {{tolerance: 1.0e-8}}
output: {{directory: {out}}}
"""


def run(folder, ranks, loss, train):
    out = folder / f"{loss}-{ranks}"
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(train=train, loss=loss, out=out))
    return work(ranks, "bmrm.run", str(config), "--quiet", cwd=folder), out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plain file with queries of 1 to 30 rows."""
    rng = np.random.default_rng(0)
    lines = []
    for query in range(40):
        shift = rng.normal(size=4)
        for _ in range(int(rng.integers(1, 31))):
            x = rng.normal(size=4)
            grade = int(np.digitize(x @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(), [0.0, 1.5]))
            pairs = " ".join(f"{k + 1}:{value:.6f}" for k, value in enumerate(x + shift))
            lines.append(f"{grade} qid:{query} {pairs}\n")
    path = tmp_path_factory.mktemp("rankings")
    (path / "queries.svm").write_text("".join(lines))
    return path


@pytest.mark.parametrize("loss", ["ndcg", "ordinal_thresholds"])
def test_a_file_of_queries_gives_the_same_on_any_number_of_ranks(folder, loss):
    found = []
    for ranks in (1, 3):
        done, out = run(folder, ranks, loss, folder / "queries.svm")
        assert done.returncode == 0, done.stderr
        found.append(json.loads((out / "summary.json").read_text()))
    one, *others = found
    assert one["metrics"]["train"]
    for other in others:
        assert other["objective"] == pytest.approx(one["objective"], rel=1e-7)
        for name, value in one["metrics"]["train"].items():
            assert other["metrics"]["train"][name] == pytest.approx(value, abs=0.02), name


def test_a_query_on_two_ranks_is_refused(folder):
    data = read(folder / "queries.svm")
    for k, rows in enumerate((slice(0, 100), slice(100, None))):
        lines = (folder / "queries.svm").read_text().splitlines(keepends=True)[rows]
        with gzip.open(folder / f"part-{k}.svm.gz", "wt") as file:  # whole files, which are not cut elsewhere
            file.writelines(lines)
    query = data.targets.groups[99]
    assert query == data.targets.groups[100]
    done, _ = run(folder, 2, "ndcg", folder / "part-*.svm.gz")
    assert done.returncode == 2
    assert f"query {query} has rows on the ranks 0 and 1" in done.stderr
    done, _ = run(folder, 1, "ndcg", folder / "part-*.svm.gz")
    assert done.returncode == 0, done.stderr
