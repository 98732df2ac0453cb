"""Labels, weights and groups as columns of csv, Parquet, Arrow and .npy files."""

import gzip
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import bmrm
from bmrm.app.predict import lines_of
from bmrm.cli import main
from bmrm.data.reading import read
from bmrm.data.writers import write_npz
from bmrm.problem import InputError

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, ipc, parquet  # noqa: E402

random = np.random.default_rng(7)
X = random.normal(size=(24, 2)).round(3)
Y = np.where(X[:, 0] > 0, "yes", "no")
W = random.integers(1, 4, size=24)
Q = np.repeat(["q1", "q2", "q3"], 8)
COLUMNS = {"age": X[:, 0], "weight": W, "query": Q, "said": Y, "size": X[:, 1]}
NAMED = {"label": "said", "weight": "weight", "group": "query"}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The same table in every format."""
    monkeypatch.chdir(tmp_path)
    table = pyarrow.table(COLUMNS)
    parquet.write_table(table, "t.parquet", row_group_size=7)
    feather.write_feather(table, "t.feather")
    with ipc.new_file("t.arrow", table.schema) as writer:
        writer.write_table(table)
    rows = zip(*(column.tolist() for column in COLUMNS.values()))
    Path("t.csv").write_text(",".join(COLUMNS) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return tmp_path


FORMATS = {"t.csv": "csv", "t.parquet": "arrow", "t.arrow": "arrow", "t.feather": "arrow"}


@pytest.mark.parametrize("name", FORMATS)
def test_columns_by_name(name, files):
    data = read(name, format={"name": FORMATS[name], **NAMED})
    np.testing.assert_array_equal(data.X, X)
    assert data.targets.y.tolist() == Y.tolist()
    assert data.targets.weights.tolist() == W.tolist()
    assert data.feature_names == ("age", "size")
    groups = data.targets.groups
    assert len(set(groups.tolist())) == 3
    assert all(len(set(groups[k : k + 8].tolist())) == 1 for k in (0, 8, 16))


@pytest.mark.parametrize("name", FORMATS)
def test_a_weight_is_a_repetition_in_training_and_none_is_needed_to_predict(name, files):
    section = f"{{name: {FORMATS[name]}, label: said, weight: weight}}"
    Path("two.csv").write_text("age,size\n" + "".join(f"{a},{b}\n" for a, b in X.tolist()))
    if name != "t.csv":
        parquet.write_table(pyarrow.table(COLUMNS).drop_columns(["query"]), "t.parquet")
        name, words = "t.parquet", ["--set", f"data.format={section}"]
    else:
        text = "\n".join(
            ",".join(line.split(",")[:2] + line.split(",")[3:]) for line in Path("t.csv").read_text().splitlines()
        )
        Path("t.csv").write_text(text + "\n")
        words = ["--format", section]
    assert main(["train", name, *words, "--lambda", "0.1", "--tolerance", "1e-9", "--quiet", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    repeated = bmrm.fit(np.repeat(X, W, axis=0), np.repeat(Y, W), regularizer=bmrm.L2(0.1), tolerance=1e-9)
    np.testing.assert_allclose(model.weights, repeated.weights, rtol=1e-4, atol=1e-5)
    assert main(["predict", "o", "two.csv", "--labels", "--out", "labels.txt"]) == 0
    assert Path("labels.txt").read_text().split() == model.predict(X).tolist()
    assert main(["evaluate", "o", name]) == 0


def test_numbers_of_columns_and_files_without_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("1,0.5,a,2,7\n2,0.25,b,3,7\n0.5,1,a,4,8\n")
    data = read("t.csv", format={"name": "csv", "label": 2, "weight": 1, "group": -1})
    assert data.X.tolist() == [[1, 2], [2, 3], [0.5, 4]]
    assert (data.targets.weights.tolist(), data.targets.groups.tolist()) == ([0.5, 0.25, 1], [7, 7, 8])


WRONG = {
    "weight: wieght": "0 columns are named 'wieght', expected one (did you mean 'weight'?)",
    "weight: said": "named twice among label, weight and group",
    "weight: query": "line 2, column 'query': 'q1', expected a finite number >= 0",
    "weight: weight, group: weight": "named twice among label, weight and group",
    "group: 9": "column 9, expected 0 to 4, or -1 to -5 from the last",
    "label: query, group: query": "named twice",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_columns_are_named(options, files, capsys):
    options = options if "label" in options else f"label: said, {options}"
    assert main(["info", "t.csv", "--format", f"{{name: csv, {options}}}"]) == 2
    said = capsys.readouterr().err
    key = options.removeprefix("label: said, ")
    assert WRONG[key] in said
    assert said.startswith("bmrm: t.csv")
    assert len(said.splitlines()) == 1


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(-(2**40), 2**40), st.booleans()), min_size=1, max_size=20),
    st.sampled_from(["parquet", "ipc"]),
)
def test_numbers_and_labels_come_back_as_they_were(rows, kind):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{kind}"
        a, b, y = zip(*rows)
        table = pyarrow.table({"a": a, "b": b, "y": y})
        if kind == "parquet":
            parquet.write_table(table, path)
        else:
            with ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        data = read(path)
    assert data.X.tolist() == [[one, other] for one, other, _ in rows]
    assert [bool(label) for label in data.targets.y] == list(y)
    assert data.targets.dtype == "bool"


def test_types_of_arrow(tmp_path):
    table = pyarrow.table(
        {
            "f": pyarrow.array([1.5, 2.5], pyarrow.float32()),
            "label": pyarrow.array(["b", "a"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.parquet.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    for name in ("t.parquet", "t.parquet.gz"):
        data = read(tmp_path / name)
        assert data.X.dtype == np.float32
        assert data.targets.y.tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["1", "2"], "column 'x', row 0: text ('1'), expected numbers; convert them, or name the column in"),
        ([1.0, None], "column 'x', row 1: the value is missing"),
        ([1.0, float("nan")], "column 'x', row 1: nan, expected a finite number"),
        ([[1.0], [2.0]], "column 'x' holds list<"),
    ],
)
def test_columns_that_are_no_features(column, words, tmp_path):
    parquet.write_table(pyarrow.table({"x": column, "y": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "t.parquet")
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 't.parquet'}: ")


def test_damaged_and_other_files(tmp_path):
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": [0, 1]}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-20])
    with pytest.raises(InputError, match="the file is damaged"):
        read(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_text("1,2\n")
    with pytest.raises(InputError, match="neither a Parquet nor an Arrow file"):
        read(tmp_path / "t.parquet")


def test_without_pyarrow_one_sentence_says_what_to_install(files, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["info", "t.parquet"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "bmrm: t.parquet: Parquet and Arrow files need pyarrow, which is not installed; pip install 'bmrm[arrow]'\n"
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_npy(dtype, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = np.column_stack([random.integers(-9, 9, size=(6, 3)), [0, 1, 0, 1, 1, 0]]).astype(dtype)
    np.save("t.npy", table)
    np.save("fortran.npy", np.asfortranarray(table))
    for name in ("t.npy", "fortran.npy"):
        data = read(name)
        assert data.X.tolist() == table[:, :3].tolist()
        assert data.X.dtype == (np.float32 if dtype == "float32" else np.float64)
        assert data.targets.y.tolist() == [0, 1, 0, 1, 1, 0]
    data = read("t.npy", format={"name": "npy", "label": 0, "group": 3})
    assert data.targets.groups.tolist() == [0, 1, 0, 1, 1, 0]
    assert data.features == 2
    assert main(["train", "t.npy", "--quiet", "--output", "o"]) == 0
    np.save("bare.npy", table[:, :3])
    assert main(["predict", "o", "bare.npy", "--out", "one.txt"]) == 0
    assert main(["predict", "o", "t.npy", "--out", "two.txt"]) == 0
    assert Path("one.txt").read_text() == Path("two.txt").read_text()


def test_what_is_no_table_of_numbers(tmp_path):
    content = io.BytesIO()
    np.save(content, np.array([{}], object), allow_pickle=True)
    cases = {"pickled objects, which are never read": content.getvalue(), "not a NumPy array": b"text"}
    for array, words in (
        (np.zeros(3), "of shape (3,), expected rows of numbers"),
        (np.array([["a"]]), "an array of <U1"),
    ):
        content = io.BytesIO()
        np.save(content, array)
        cases[words] = content.getvalue()
    whole = io.BytesIO()
    np.save(whole, np.ones((4, 2)))
    cases["the file is cut off"] = whole.getvalue()[:-50]
    for words, text in cases.items():
        (tmp_path / "t.npy").write_bytes(text)
        with pytest.raises(InputError) as caught:
            read(tmp_path / "t.npy")
        assert words in str(caught.value)


def test_predictions_of_batches_are_those_of_the_whole(files, monkeypatch):
    section = "{name: arrow, label: said, weight: weight}"
    parquet.write_table(pyarrow.table(COLUMNS).drop_columns(["query"]), "t.parquet")
    assert main(["train", "t.parquet", "--format", section, "--lambda", "0.1", "--quiet", "--output", "o"]) == 0
    table = pyarrow.table({"size": X[:, 1], "age": X[:, 0]})
    parquet.write_table(table, "new.parquet")
    with ipc.new_file("new.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    expected = [repr(score) for score in bmrm.load_model("o/model.npz").decision_function(X).tolist()]
    monkeypatch.setattr("bmrm.data.readers.arrow.BATCH", 7)
    for name in ("new.parquet", "new.arrow"):
        assert main(["predict", "o", name, "--out", "s.txt"]) == 0
        np.testing.assert_allclose(np.loadtxt("s.txt"), np.array(expected, float), rtol=1e-12)
    done = subprocess.run(
        [sys.executable, "-m", "bmrm.cli", "predict", "o", "-"],
        input=Path("new.parquet").read_bytes(),
        capture_output=True,
    )
    np.testing.assert_allclose(np.array(done.stdout.split(), float), np.array(expected, float), rtol=1e-12)
    ages = X[:, 0].tolist()
    ages[16] = None
    parquet.write_table(pyarrow.table({"size": X[:, 1], "age": ages}), "bad.parquet")
    with pytest.raises(InputError, match=r"^bad\.parquet: column 'age', row 16: the value is missing"):
        list(lines_of(bmrm.load_model("o/model.npz"), "bad.parquet", "auto", "scores"))


def of_pandas(index=None, names=None, **options):
    """A sorted, filtered frame with text labels, and the same rows as arrays."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": X[:, 0], "size": X[:, 1], "said": Y})
    frame = frame[frame["size"] > -1].sort_values("age")
    if index is not None:
        frame = frame.set_index(index, **options)
    return frame if names is None else frame.rename_axis(names)


def stored(frame, name):
    if name.endswith("parquet"):
        frame.to_parquet(name)
    else:
        frame.to_feather(name) if name.endswith("feather") else _as_arrow(frame, name)
    return name


def _as_arrow(frame, name):
    table = pyarrow.Table.from_pandas(frame)
    with ipc.new_file(name, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_the_index_of_a_frame_is_no_column(name, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    plain = of_pandas()
    data = read(stored(plain, name))
    np.testing.assert_array_equal(data.X, plain[["age", "size"]])
    assert data.targets.y.tolist() == plain["said"].tolist()
    assert data.layout.notes == (
        "column '__index_level_0__' is left out: the index of a data frame (data.ignore: [] would keep it)",
    )
    assert read(stored(plain.reset_index(drop=True), name)).layout.notes == ()
    two = plain.set_index(pandas.MultiIndex.from_arrays([range(len(plain)), plain["size"]], names=[None, "row"]))
    assert read(stored(two, name)).feature_names == ("age", "size")
    assert read(stored(of_pandas(names="row"), name)).feature_names == ("age", "size")
    named = of_pandas(index="size")
    assert read(stored(named, name)).feature_names == ("age",)
    kept = read(name, format={"name": "arrow", "label": "said", "ignore": []})
    assert (kept.feature_names, kept.layout.notes) == (("age", "size"), ())
    labels = read(stored(of_pandas(index="said"), name), format={"name": "arrow", "label": "said"})
    assert (labels.feature_names, labels.layout.labels) == (("age", "size"), ("said",))
    ignored = read(stored(plain, name), format={"name": "auto", "ignore": ["size"]})
    np.testing.assert_array_equal(ignored.X, plain[["age"]])


def test_an_index_without_metadata_and_strange_metadata(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    polars = pytest.importorskip("polars")
    polars.read_parquet(stored(of_pandas(), "t.parquet")).write_parquet("u.parquet")
    assert read("u.parquet").feature_names == ("age", "size")
    table = pyarrow.table({"a": [1.0, 2.0], "y": [0, 1]})
    for said in (b"", b"[]", b"{", b"\xff", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}, 7, "z"]}'):
        parquet.write_table(table.replace_schema_metadata({b"pandas": said}), "v.parquet")
        assert read("v.parquet").feature_names == ("a",)


def test_a_model_knows_what_was_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = of_pandas(names="row")
    stored(frame, "t.parquet")
    assert main(["train", "t.parquet", "--quiet", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    expected = [repr(one) for one in model.decision_function(frame[["age", "size"]]).tolist()]
    frame.reset_index().to_csv("plain.csv", index=False)
    frame.to_csv("index.csv")
    frame.reset_index().to_csv("both.csv")
    stored(frame.reset_index(), "column.parquet")
    stored(frame.drop(columns="said"), "bare.parquet")
    stored(frame.set_index("age"), "feature.parquet")
    for name in ("plain.csv", "index.csv", "both.csv", "column.parquet", "bare.parquet", "feature.parquet"):
        assert main(["predict", "o", name, "--out", "s.txt"]) == 0, name
        assert Path("s.txt").read_text().split() == expected, name
    assert main(["evaluate", "o", "column.parquet"]) == 0


def test_ignored_columns_of_other_formats(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("t.npz", X=np.c_[X, W], y=Y, names=np.array(["a", "b", "w"]))
    data = read("t.npz", format={"name": "auto", "ignore": ["b"]})
    np.testing.assert_array_equal(data.X, np.c_[X[:, 0], W])
    assert (data.feature_names, data.layout.ignored) == (("a", "w"), ("b",))
    with pytest.raises(InputError, match=r"t\.npz: 0 columns are named 'c'"):
        read("t.npz", format={"name": "npz", "ignore": ["c"]})
    np.save("t.npy", np.c_[X, W])
    np.testing.assert_array_equal(read("t.npy", format={"name": "npy", "ignore": [1]}).X, X[:, :1])
    Path("t.svm").write_text("1 1:2\n")
    with pytest.raises(InputError, match=r"t\.svm: data\.ignore is for arrow, csv, npy, npz, store, not for svmlight"):
        read("t.svm", format={"name": "auto", "ignore": ["a"]})
    sparse = bmrm.data.matrix.Csr.from_scipy(sp.csr_array(np.c_[X, W * (W > 1)]))
    write_npz("s.npz", replace(read("t.npz"), X=sparse))
    kept = read("s.npz", format={"name": "npz", "ignore": ["a"]})
    np.testing.assert_array_equal(kept.X.to_dense(), np.c_[X[:, 1], W * (W > 1)])
    assert main(["train", "t.npz", "--ignore", "b", "--quiet", "--output", "o"]) == 0
    assert main(["evaluate", "o", "t.npz"]) == 0


def test_ignored_columns_of_bundled_sets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["sklearn:diabetes", "--ignore", "bmi", "--ignore", "age", "--loss", "least_squares", "--quiet"]
    assert main(["train", *words, "--test", "sklearn:diabetes", "--output", "o"]) == 0
    assert bmrm.load_model("o/model.npz").dim == 8
    capsys.readouterr()
    assert main(["evaluate", "o", "sklearn:diabetes"]) == 0
    assert main(["predict", "o", "sklearn:diabetes", "--out", "s.txt"]) == 0
    assert main(["info", "sklearn:diabetes", "--ignore", "bmii"]) == 2
    assert "sklearn:diabetes: 0 columns are named 'bmii', expected one (did you mean 'bmi'?)" in capsys.readouterr().err
    assert main(["info", "sklearn:diabetes", "--data.header", "true"]) == 2


def test_matrices_of_scipy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matrix = sp.random(9, 5, 0.5, random_state=0, format="csr")
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    sp.save_npz("t.npz", matrix)
    data = read("t.npz")
    np.testing.assert_array_equal(data.X.to_dense(), matrix.toarray())
    assert not data.labelled
    turned = matrix[:, ::-1].copy()
    assert not turned.has_sorted_indices
    sp.save_npz("t.npz", turned)
    np.testing.assert_array_equal(read("t.npz").X.to_dense(), turned.toarray())
    sp.save_npz("t.npz", matrix.tocsc())
    with pytest.raises(InputError, match=r"t\.npz: a scipy matrix in the form 'csc', expected csr"):
        read("t.npz")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_names_and_labels_that_are_no_utf8(kind, tmp_path):
    path = tmp_path / f"t.{kind}"

    def written(table):
        if kind == "parquet":
            parquet.write_table(table, path)
        else:
            with ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        content = path.read_bytes()
        assert b"QQQQ" in content
        path.write_bytes(content.replace(b"QQQQ", b"Q\xff\xfeQ"))

    written(pyarrow.table({"a": [1.0, 2.0], "QQQQ": [3.0, 4.0], "y": [0, 1]}).replace_schema_metadata(None))
    with pytest.raises(InputError, match=r"the name of (a column|column 1) is not UTF-8"):
        read(path)
    written(pyarrow.table({"a": [1.0, 2.0], "y": ["b", "QQQQ"]}))
    with pytest.raises(InputError, match="column 'y', row 1: the text is not UTF-8"):
        read(path)


def test_a_label_that_is_nan_is_missing(tmp_path):
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": [0.0, float("nan")]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'y', row 1: the value is missing"):
        read(tmp_path / "t.parquet")
    table = pyarrow.table({"x": [1.0, 2.0], "y": pyarrow.array([1, 2]).cast(pyarrow.decimal128(25, 2))})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").targets.y.tolist() == [1, 2]


def test_text_that_points_beyond_the_file(tmp_path):
    table = pyarrow.table({"x": [1.0, 2.0], "y": ["abc", "defg"]})
    with ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    content = (tmp_path / "t.arrow").read_bytes()
    ends = np.array([0, 3, 7], np.int32).tobytes()
    assert content.count(ends) == 1
    for wrong in ([0, 3, 2**30], [0, -5, 7], [0, 9, 7]):
        (tmp_path / "t.arrow").write_bytes(content.replace(ends, np.array(wrong, np.int32).tobytes()))
        with pytest.raises(InputError, match="column 'y': the file is damaged"):
            read(tmp_path / "t.arrow")


def test_categories_in_arrow_files(tmp_path):
    codes = pyarrow.array([2, 0, 1, 0], pyarrow.uint8())
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):  # polars writes the last
        grades = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["low", "fair", "high"], kind), ordered=True)
        sizes = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array([3.5, 4.0, 7.0]))
        feather.write_feather(pyarrow.table({"size": sizes, "grade": grades}), tmp_path / "t.feather")
        data = read(tmp_path / "t.feather")
        assert data.targets.y.tolist() == ["high", "low", "fair", "low"]
        assert np.array_equal(data.X[:, 0], [7.0, 3.5, 4.0, 3.5])


def test_the_index_may_be_groups(tmp_path):
    frame = pyarrow.table({"a": [1.0, 2.0, 3.0], "y": [0, 1, 1], "__index_level_0__": [4, 4, 5]})
    parquet.write_table(frame, tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", format={"name": "arrow", "group": "__index_level_0__"})
    assert data.targets.groups.tolist() == [4, 4, 5]
    assert data.targets.y.tolist() == [0, 1, 1]  # the last column of the frame, not of the file
    assert data.feature_names == ("a",)
