"""Cores are divided among the ranks of a node by what each may run on."""

import json
import sys

import numpy as np
import pytest

from bmrm.kernels.workers import usable_cores
from bmrm.mpi.cores import fair_share, mask_of, threads_for
from tests.mpi.launch import launch


def shares(*masks):
    all_masks = np.array([mask_of(mask, 8) for mask in masks])
    return [fair_share(mask, all_masks.sum(axis=0)) for mask in all_masks]


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ([set(range(8))], [8]),
        ([set(range(8))] * 3, [2, 2, 2]),
        ([{0, 1, 2, 3}, {4, 5, 6, 7}], [4, 4]),  # bound to sockets
        ([{k} for k in range(8)], [1] * 8),  # bound to cores
        ([{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}], [2, 2, 4]),
        ([{0}] * 3, [1, 1, 1]),
    ],
)
def test_each_core_is_divided_among_those_who_may_use_it(masks, expected):
    assert [threads_for(share) for share in shares(*masks)] == expected


def test_ranks_outnumber_cores_where_a_share_is_below_one():
    assert min(shares({0}, {1})) == 1.0
    assert min(shares({0, 1}, {0, 1}, {0, 1})) == pytest.approx(2 / 3)


CONFIG = """
schema: 2
data: {train: "synthetic:sparse_binary?rows=200&features=5", bias: none}
loss: hinge
regularizer: {name: l2, lambda: 0.01}
output: {directory: out}
"""


@pytest.mark.mpi
def test_threads_are_in_the_heading_the_table_and_the_summary(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = launch(2, "-m", "bmrm.run", "config.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    threads = json.loads((tmp_path / "out" / "summary.json").read_text())["threads"]
    assert threads == max(1, usable_cores() // 2)
    words = "one thread" if threads == 1 else f"{threads} threads"
    assert f"bmrm: ranks: 2, {words} each" in done.stderr
    assert f"2, {words} each" in done.stdout


@pytest.mark.mpi
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="affinity masks")
@pytest.mark.skipif(usable_cores() < 2, reason="two cores")
def test_a_rank_that_is_bound_to_a_core_has_it_for_itself(tmp_path):
    (tmp_path / "bound.py").write_text(
        "import os\n"
        "cores = sorted(os.sched_getaffinity(0))\n"
        "os.sched_setaffinity(0, {cores[int(os.environ['PMI_RANK'])]})\n"
        "from bmrm.mpi.launch import open_group\n"
        "group = open_group()\n"
        "found = group.gather([group.cores_per_rank, group.crowded])\n"
        "if group.rank == 0:\n"
        "    print(found)\n"
    )
    done = launch(2, str(tmp_path / "bound.py"))
    assert done.stdout.strip() == "[[1, False], [1, False]]", done.stderr
