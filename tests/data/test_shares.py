"""Shares of rows and bytes: contiguous, whole together, groups never parted, costs about equal."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmrm.data.readers._core.shares import row_share
from bmrm.data.reading import scan


@given(sizes=st.lists(st.integers(1, 30), max_size=20), parts=st.integers(1, 9))
def test_shares_of_rows_part_no_group(sizes, parts):
    groups = np.repeat(np.arange(len(sizes))[::-1], sizes).astype(np.int64)
    shares = [row_share(groups.size, part, parts, groups) for part in range(parts)]
    assert shares[0][0] == 0
    assert shares[-1][1] == groups.size
    for (a, b), (c, _) in itertools.pairwise(shares):
        assert a <= b == c
        assert not 0 < b < groups.size or groups[b - 1] != groups[b]


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_shares_cost_about_the_same_though_groups_do_not(parts):
    sizes = np.random.default_rng(0).integers(1, 200, 500)
    sizes[:20] = 2000
    groups = np.repeat(np.arange(sizes.size), sizes)
    rows = np.diff([row_share(groups.size, part, parts, groups) for part in range(parts)], axis=1)
    assert rows.max() <= 1.2 * rows.mean()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    parts=st.integers(1, 8),
    comments=st.booleans(),
    packed=st.booleans(),
)
def test_bytes_of_a_file_part_no_query(tmp_path_factory, sizes, parts, comments, packed):
    import gzip

    lines, row = [], 0
    for query, size in enumerate(sizes):
        for _ in range(size):
            if comments and row % 3 == 0:
                lines.append("# a comment\n\n")
            lines.append(f"{row % 3} qid:{100 - query} 1:{row + 1} 2:0.5 # doc {row}\n")
            row += 1
    path = tmp_path_factory.mktemp("shares") / ("data.svm.gz" if packed else "data.svm")
    with (gzip.open if packed else open)(path, "wt") as file:
        file.writelines(lines)
    shares = [scan(path, part=part, parts=parts).data.targets.groups for part in range(parts)]
    shares = [share for share in shares if share is not None and share.size]
    np.testing.assert_array_equal(np.concatenate(shares), np.repeat(100 - np.arange(len(sizes)), sizes))
    owned = [set(share.tolist()) for share in shares]
    assert sum(map(len, owned)) == len(set.union(*owned))
