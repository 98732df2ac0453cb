"""Shares of rows and bytes: contiguous, whole together, groups never parted, costs about equal."""

import gzip
import itertools

import numpy as np
import pytest
from hypothesis import given
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


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    parts=st.integers(1, 8),
    comments=st.booleans(),
    packed=st.booleans(),
)
def test_bytes_of_a_file_part_no_query(tmp_path_factory, sizes, parts, comments, packed):
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


@given(
    files=st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=2, max_size=6),
    parts=st.integers(1, 7),
    queries=st.booleans(),
)
def test_several_files_are_shared_out_in_order_compressed_ones_whole_and_queries_too(
    tmp_path_factory, files, parts, queries
):
    folder, row, paths, borders = tmp_path_factory.mktemp("files"), 0, [], [0]
    for number, (rows, packed) in enumerate(files):
        path = folder / f"{number}.svm{'.gz' if packed else ''}"
        with (gzip.open if packed else open)(path, "wt") as file:
            for k in range(rows):
                query = f"qid:{1000 * number + k // 3} " if queries else ""
                file.write(f"{row} {query}{k % 7 + 1}:{row + 0.5}\n")
                row += 1
        paths.append(str(path))
        borders.append(row)
    raws = [scan(paths, part=part, parts=parts) for part in range(parts)]
    shares = [raw.data.targets.y.tolist() for raw in raws]
    assert list(itertools.chain(*shares)) == list(range(row))
    values = [raw.data.X.values for raw in raws if raw.data.rows]
    np.testing.assert_array_equal(np.concatenate(values), np.arange(row) + 0.5)
    for share in filter(None, shares):
        file = int(np.searchsorted(borders, share[0], side="right")) - 1
        inside = share[0] - borders[file]
        assert inside == 0 or not files[file][1]  # no part begins inside a compressed file
        assert not queries or inside % 3 == 0  # nor inside a query


def test_compressed_files_are_shared_out_by_size(tmp_path):
    random, paths = np.random.default_rng(0), []
    sizes = [900, 100, 100, 100, 100, 500, 400, 50, 50, 100]
    for number, rows in enumerate(sizes):
        path = tmp_path / f"{number}.svm.gz"
        with gzip.open(path, "wt") as file:
            file.writelines(f"1 1:{random.random():.9f} 2:{random.random():.9f}\n" for _ in range(rows))
        paths.append(str(path))
    rows = [scan(paths, part=part, parts=3).data.rows for part in range(3)]
    assert rows == [900, 900, 600]  # by number of files: 1100, 700 and 600


def test_plain_files_are_shared_out_by_bytes(tmp_path):
    for name, rows in (("a.svm", 10), ("b.svm", 990)):
        (tmp_path / name).write_text("1 1:0.5 2:0.25\n" * rows)
    paths = [str(tmp_path / name) for name in ("a.svm", "b.svm")]
    assert [scan(paths, part=part, parts=4).data.rows for part in range(4)] == [250] * 4


def test_sentences_of_several_files_stay_whole(tmp_path):
    for name, sentences in (("a.conll", 2), ("b.conll", 9)):
        (tmp_path / name).write_text("the DT B\ndog NN I\n\n" * sentences)
    paths = [str(tmp_path / name) for name in ("a.conll", "b.conll")]
    rows = [scan(paths, format="conll", part=part, parts=3).data.rows for part in range(3)]
    assert sum(rows) == 22
    assert all(count % 2 == 0 for count in rows)
