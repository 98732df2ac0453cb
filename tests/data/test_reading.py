"""Sources: who reads what, in which format, and what two steps of reading agree on."""

import subprocess
import sys

import numpy as np
import pytest

from bmrm.data.readers._core.raw import join
from bmrm.data.readers.svmlight import Svmlight
from bmrm.data.reading import from_one, read, read_weights, scan
from bmrm.data.writers import write_npz
from bmrm.problem import InputError


def agreed(source, parts, **options):
    raws = [scan(source, part=part, parts=parts, **options) for part in range(parts)]
    extent = np.max([raw.extent for raw in raws], axis=0)
    return [raw.dataset(extent) for raw in raws], extent


def labels(datasets):
    return [float(y) for data in datasets for y in data.targets.y]


@pytest.fixture
def shards(tmp_path):
    for k in range(5):
        rows = "".join(f"{10 * k + j} {k + 1}:1 {k + j + 3}:2\n" for j in range(3))
        (tmp_path / f"part-{k}.svm").write_text(rows)
    return tmp_path


@pytest.mark.parametrize("parts", range(1, 8))
@pytest.mark.parametrize("form", ["glob", "list", "globs"])
def test_several_plain_files_are_shared_out_by_bytes(shards, parts, form):
    source = {
        "glob": str(shards / "part-*.svm"),
        "list": [shards / f"part-{k}.svm" for k in range(5)],
        "globs": [str(shards / "part-[01].svm"), str(shards / "part-[234].svm")],
    }[form]
    datasets, _ = agreed(source, parts)
    assert labels(datasets) == [10 * k + j for k in range(5) for j in range(3)]
    assert {data.features for data in datasets} == {9}
    assert max(data.rows for data in datasets) - min(data.rows for data in datasets) <= 2
    whole = read(source)
    np.testing.assert_array_equal(np.vstack([data.X.to_dense() for data in datasets]), whole.X.to_dense())


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_rank_in_a_name(shards, parts):
    datasets, _ = agreed(str(shards / "part-{rank}.svm"), parts)
    assert labels(datasets) == [10 * k + j for k in range(parts) for j in range(3)]
    (shards / "p-002").write_text("7 1:1\n")
    assert labels([scan(str(shards / "p-{rank:03d}"), part=2, parts=9).dataset()]) == [7]
    with pytest.raises(InputError, match=r"part-5\.svm: No such file"):
        scan(str(shards / "part-{rank}.svm"), part=5, parts=6)


def test_numbering_is_agreed_over_parts(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    (tmp_path / "b.svm").write_text("1 0:1\n")
    (tmp_path / "c.svm").write_text("1\n")
    datasets, extent = agreed([tmp_path / "a.svm", tmp_path / "b.svm", tmp_path / "c.svm"], 5)
    assert not from_one(extent)
    assert [list(data.X.indices) for data in datasets if data.rows] == [[1], [0], []]
    assert {data.features for data in datasets} == {2}
    datasets, extent = agreed([tmp_path / "a.svm", tmp_path / "c.svm"], 4)
    assert from_one(extent)
    assert [list(data.X.indices) for data in datasets if data.rows] == [[0], []]
    assert {data.features for data in datasets} == {1}


def test_test_data_follow_the_training_data(tmp_path):
    (tmp_path / "train").write_text("1 0:1 5:1\n")
    (tmp_path / "test").write_text("1 3:1\n")
    train = scan(tmp_path / "train")
    test = scan(tmp_path / "test").dataset(features=train.dataset().features, one_based=from_one(train.extent))
    assert list(test.X.indices) == [3]
    assert test.features == 6
    with pytest.raises(InputError, match="test: 3 features, expected at most 2"):
        scan(tmp_path / "test").dataset(features=2)
    with pytest.raises(InputError, match="train: feature number 0, expected numbers from 1"):
        train.dataset(one_based=True)


def test_dense_data_keep_their_columns_whatever_others_count_from(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,3\n4,5,6\n")
    for one_based in (None, True, False):
        assert scan(tmp_path / "a.csv").dataset(one_based=one_based).X.shape == (2, 2)
    datasets, _ = agreed([tmp_path / "a.csv"] * 2, 3)
    assert sorted(data.X.shape for data in datasets) == [(0, 2), (2, 2), (2, 2)]
    assert scan(tmp_path / "a.csv").dataset(features=4).X.shape == (2, 4)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"1,2\n", np.ndarray),
        ("a.tsv", b"1\t2\n", np.ndarray),
        ("plain", b"1,2\n", np.ndarray),
        ("plain", b"-1 3:2\n", None),
        ("plain", b"# note\n\n-1 qid:2 3:2 # 1,2\n", None),
        ("a.t", b"1,2 3:1\n", "label '1,2'"),
        ("a.t", b"3 " + b"1:1 " * 9000, "rising"),
        ("plain", b"x 3:1\n", "line 1: label is 'x'"),
        ("plain", b"3\n4 1:1\n5 x\n", "line 3: 'x', expected index:value"),
        ("plain", b"# nothing\n", "format is not recognised"),
        ("a.yaml", b"data: {train: a.svm}\n", "a config by its name"),
        ("plain", b"hello world\n", "format is not recognised"),
        ("plain", b"\x00\x01\x02", "format is not recognised"),
    ],
)
def test_format_by_name_then_by_content(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            read(path)
    elif expected is None:
        assert read(path).X.indices.tolist() == [2]
    else:
        assert isinstance(read(path).X, expected)


def test_archives_are_recognised_by_content(tmp_path):
    data = read("synthetic:ranking?queries=4")
    write_npz(tmp_path / "plain", data)
    np.testing.assert_array_equal(read(tmp_path / "plain").X, data.X)


def test_formats_by_name_with_options(tmp_path):
    path = tmp_path / "a"
    path.write_text("1,2 3:1.5\n")
    for format in ({"name": "svmlight", "multilabel": True}, Svmlight(multilabel=True)):
        assert list(read(path, format=format).targets.y.labels) == [1, 2]
    for format, message in (
        ("svmlite", "unknown data format 'svmlite' .did you mean 'svmlight'"),
        ({"name": "svmlight", "multilable": True}, "no option 'multilable' .did you mean 'multilabel'"),
        ({"name": "svmlight", "dtype": "int8"}, "dtype is 'int8', expected one of"),
        ({"multilabel": True}, "expected a name"),
    ):
        with pytest.raises(InputError, match=message):
            read(path, format=format)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such/*.svm", "no file matches"),
        ("no/such.svm", "No such file"),
        ([], "list of files is empty"),
        (["sklearn:iris", "a.svm"], "cannot be one of a list"),
        ("sklearn:irises", "did you mean 'iris'"),
        ("synthetic:sparse", "did you mean 'sparse_binary'"),
        ("synthetic:ranking?query=3", "no option 'query' .did you mean 'queries'"),
        ("synthetic:ranking?queries=three", "queries is 'three', expected int"),
        ("synthetic:ranking?queries=0", "queries is 0, expected a whole number >= 1"),
        ("synthetic:ranking?noise=nan", "noise is nan, expected a number >= 0"),
    ],
)
def test_sources_that_are_wrong(source, message):
    with pytest.raises(InputError, match=message):
        read(source)


def test_an_empty_file_among_several_is_an_error(shards):
    (shards / "part-3.svm").write_text("")
    with pytest.raises(InputError, match=r"part-3\.svm: the file is empty"):
        read(str(shards / "*.svm"))
    (shards / "part-3.svm").write_text("#\n")
    with pytest.raises(InputError, match=r"part-3\.svm: the file has no rows"):
        read(str(shards / "*.svm"))


def test_files_that_do_not_join(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    (tmp_path / "b.csv").write_text("1,2\n")
    (tmp_path / "c.csv").write_text("1,2,3\n")
    (tmp_path / "d.csv").write_text("1,x\n")
    for names, message in (
        ("ab", "number their columns"),
        ("bc", "1 to 2 features"),
        ("bd", "labels of different kinds"),
    ):
        source = [next(tmp_path.glob(f"{name}.*")) for name in names]
        with pytest.raises(InputError, match=message):
            read(source)


def test_joined_files_keep_values_and_groups(tmp_path):
    (tmp_path / "a.svm").write_text("1 qid:1 1:1\n")
    (tmp_path / "b.svm").write_text("1 qid:1 1:2.5\n")
    (tmp_path / "c.svm").write_text("1 3:1\n")
    data = read([tmp_path / "a.svm", tmp_path / "b.svm"])
    assert data.X.values.tolist() == [1, 2.5]
    assert data.targets.groups.tolist() == [1, 1]
    assert read(str(tmp_path / "*.svm")).targets.groups is None
    assert read([tmp_path / "a.svm", tmp_path / "c.svm"]).X.values is None
    single = join([scan(tmp_path / f"{k}.svm", format=Svmlight(dtype="float32")) for k in "ab"], "x")
    assert single.data.X.dtype == np.float32


def test_file_names_with_pattern_characters(tmp_path):
    path = tmp_path / "a[1].svm"
    path.write_text("1 1:1\n")
    assert read(str(path)).rows == 1


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "digits", "wine", "diabetes", "linnerud"])
def test_bundled(name):
    data = read(f"sklearn:{name}")
    assert data.X.dtype == np.float64
    datasets, _ = agreed(f"sklearn:{name}", 3)
    np.testing.assert_array_equal(np.concatenate([share.targets.y for share in datasets]), data.targets.y)
    np.testing.assert_array_equal(np.concatenate([share.X for share in datasets]), data.X)


@pytest.mark.parametrize("name", ["sparse_binary", "dense_regression", "multiclass", "ranking", "chains"])
def test_generated_alike_everywhere_and_by_seed(name):
    first, again, other = (read(f"synthetic:{name}{seed}") for seed in ("", "?seed=0", "?seed=1"))
    np.testing.assert_array_equal(first.targets.y, again.targets.y)
    X, Y, Z = (data.X if isinstance(data.X, np.ndarray) else data.X.values for data in (first, again, other))
    np.testing.assert_array_equal(X, Y)
    assert X.shape != Z.shape or not np.array_equal(X, Z)


def test_generated_data_are_what_they_say():
    data = read("synthetic:sparse_binary?rows=3000&features=800&noise=0.0")
    X = data.X.to_scipy()
    assert (data.rows, data.features) == (3000, 800)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    counts = np.sort(np.bincount(data.X.indices, minlength=800))
    assert counts[-80:].sum() > 0.4 * counts.sum()
    assert abs(data.targets.y.mean()) < 0.01
    ranking = read("synthetic:ranking?queries=7&rows_per_query=6&levels=3")
    assert ranking.targets.groups.tolist() == np.repeat(np.arange(1, 8), 6).tolist()
    for query in range(1, 8):
        assert sorted(ranking.targets.y[ranking.targets.groups == query]) == [0, 0, 1, 1, 2, 2]
    assert set(read("synthetic:multiclass?classes=4").targets.y) == {0, 1, 2, 3}
    chains = read("synthetic:chains?sentences=2000&longest=6&labels=3&follow=0.7&spread=20")
    groups, y = chains.targets.groups, chains.targets.y
    assert np.unique(np.unique(groups, return_counts=True)[1]).tolist() == [1, 2, 3, 4, 5, 6]
    within = np.diff(groups) == 0
    assert np.mean(((np.diff(y) % 3) == 1)[within]) == pytest.approx(0.7 + 0.3 / 3, abs=0.02)
    centres = np.array([chains.X[y == k].mean(axis=0) for k in range(3)])
    assert np.std(chains.X - centres[y.astype(int)]) == pytest.approx(1.0, abs=0.02)
    exact = read("synthetic:dense_regression?rows=100&features=5&noise=0")
    v, residual, *_ = np.linalg.lstsq(exact.X, exact.targets.y, rcond=None)
    assert residual[0] < 1e-20
    assert abs(np.linalg.norm(v) - 1) < 1e-12


def test_weights(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("1\n0.5 # half\n\n2e0\n")
    assert read_weights(path).tolist() == [1, 0.5, 2]
    for content, message in (
        ("1\n-1\n", "line 2: '-1', expected a finite number >= 0"),
        ("1\nx\n", "line 2: 'x'"),
        ("nan\n", "line 1: 'nan'"),
        ("inf\n", "line 1: 'inf'"),
        ("1_0\n", "line 1: '1_0'"),
        ("1 2\n", "line 1: '1 2'"),
        ("#\n", "no weights"),
        ("", "empty"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=r"w\.txt") as caught:
            read_weights(path)
        assert message in str(caught.value)


def test_the_room_is_light_to_import():
    heavy = "{'scipy', 'sklearn', 'numba', 'pandas', 'matplotlib', 'pydantic', 'rich'}"
    code = f"import sys, bmrm.data.reading, bmrm.data.writers; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
