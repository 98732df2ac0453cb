"""The thesis' formats: read as its appendix B.3 says, written so that reading gives the same, one message each."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from bmrm.app.convert import convert
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.reading import read, scan
from bmrm.data.writers import write_npz
from bmrm.problem import InputError

SPARDAT = "# a comment\n50 0 3:1 7\n-2.5 1\n\n42.42 2 0 5\n0\n"
ROWS = [[0, 3, 7], [1], [0, 2, 5], []]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sp.txt").write_text(SPARDAT)
    return tmp_path


def rows_of(data):
    return [np.flatnonzero(row).tolist() for row in data.X.to_dense()]


def links(rows=60, features=25, sparse=True):
    X = (np.random.default_rng(3).random((rows, features)) < 0.2).astype(float)
    X[0, -1] = 1.0
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, 0.0)
    return Dataset.from_arrays(sp.csr_matrix(X) if sparse else X, y)


def test_spardat_is_read(here):
    data = read("sp.txt", format="spardat")
    assert rows_of(data) == ROWS
    assert data.targets.y.tolist() == [50.0, -2.5, 42.42, 0.0]
    assert data.X.values is None
    assert data.features == 8  # indices count from 0, whether there is a 0 or not
    (here / "one.txt").write_text("1 1\n0 2\n")
    assert read("one.txt", format="spardat").features == 3


@pytest.mark.parametrize(("name", "y"), [("42.42+", [1, 0, 1, 0]), ("42.42-", [0, 1, 1, 1]), ("-1e0+", [1, 0, 1, 1])])
def test_the_threshold_is_in_the_name_or_in_the_format(here, name, y):
    assert read(f"sp.txt:{name}").targets.y.tolist() == y
    assert read("sp.txt", format={"name": "spardat", "threshold": name}).targets.y.tolist() == y
    (here / f"sp.txt:{name}").write_text("1 0\n")  # a file of this name is that file
    assert read(f"sp.txt:{name}", format="spardat").rows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0\nyes 2\n", "a.txt, line 2: the target is 'yes', expected a finite number"),
        ("1 0\n\n# c\nnan 2\n", "line 4: the target is 'nan'"),
        ("1 0 -2\n", "line 1: '-2', expected the index of a feature that is 1"),
        ("1 0 2:0.5\n", "line 1: '2:0.5', expected the index of a feature that is 1; index:value pairs are those of"),
        ("1 3 0 3\n", "line 1: the index 3 is there twice"),
        ("1 99999999999\n", "line 1: '99999999999', expected the index"),
        ("# nothing\n", "the file has no rows"),
    ],
)
def test_what_is_no_spardat(here, text, message):
    (here / "a.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read("a.txt", format="spardat")


def test_names_that_say_different_things(here):
    with pytest.raises(InputError, match="expected names that say the same of their targets"):
        read(["sp.txt:1+", "sp.txt:2+"])
    with pytest.raises(InputError, match=r"its name says threshold: 1\+, but data.format has threshold: 2\+"):
        read("sp.txt:1+", format={"name": "spardat", "threshold": "2+"})
    with pytest.raises(InputError, match="threshold is '1', expected a number with"):
        read("sp.txt", format={"name": "spardat", "threshold": "1"})


def test_june_is_two_files(here):
    (here / "f.txt").write_text("0 3 7\n1\n\n0:1 2 5\n")
    (here / "a.csv").write_text(
        "name, active ,dose,toxic\n\nx,ACT,1,ACT\ny,NOT_ACT,2,ACT\nz,ACT,3,NOT_ACT\nv,ACT,4,ACT\n"
    )
    data = read("f.txt:a.csv:active")
    assert rows_of(data) == [[0, 3, 7], [1], [], [0, 2, 5]]
    assert data.targets.y.tolist() == [1, 0, 1, 1]
    both = read("f.txt", format={"name": "june", "outputs": "a.csv"})  # columns of nothing but ACT and NOT_ACT
    assert both.targets.y.tolist() == [[1, 1], [0, 1], [1, 0], [1, 1]]
    third = read("f.txt", format={"name": "june", "outputs": "a.csv", "label": 3})
    assert third.targets.y.tolist() == [1, 1, 0, 1]
    for label, message in (
        ("dose", "'dose' has others than ACT and NOT_ACT, expected one of active, toxic"),
        ("actve", "no"),
    ):
        with pytest.raises(InputError, match=message):
            read(f"f.txt:a.csv:{label}")
    (here / "f.txt").write_text("0\n1\n")
    with pytest.raises(InputError, match=r"a\.csv: outputs of 4 rows, f.txt has 2 rows"):
        read("f.txt:a.csv:active")
    with pytest.raises(InputError, match=r"f.txt: expected data.format: .*outputs: FILE"):
        read("f.txt", format="june")


@pytest.mark.parametrize(
    "suffix", [".spardat", ".ssv", ".hb", ".csv", ".tsv", ".parquet", ".arrow", ".spardat.gz", ".csv.xz"]
)
@pytest.mark.parametrize("sparse", [True, False])
def test_what_is_written_is_read(here, suffix, sparse):
    data = links(sparse=sparse)
    write_npz("a.npz", data)
    found = convert("a.npz", f"b{suffix}")
    assert (found.rows, found.features, found.format) == (60, 25, None)
    back = read("b.factors.ssv" if suffix == ".ssv" else f"b{suffix}")
    dense = back.X if isinstance(back.X, np.ndarray) else back.X.to_dense()
    np.testing.assert_array_equal(dense, data.X.to_dense() if sparse else data.X)
    np.testing.assert_array_equal(back.targets.y, data.targets.y)


@pytest.mark.parametrize("suffix", [".hb", ".csv", ".parquet"])
def test_numbers_come_back_to_the_last_bit(here, suffix):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((17, 4)) * 10.0 ** rng.integers(-200, 200, (17, 4))
    write_npz("a.npz", Dataset.from_arrays(X, rng.standard_normal(17) / 3.0))
    convert("a.npz", f"b{suffix}")
    back = read(f"b{suffix}")
    dense = back.X if isinstance(back.X, np.ndarray) else back.X.to_dense()
    assert dense.tobytes() == X.tobytes()
    assert back.targets.y.tobytes() == read("a.npz").targets.y.tobytes()


def test_harwell_boeing_of_scipy_and_of_others(here):
    X = sp.random(9, 5, density=0.4, random_state=1, format="csc")
    scipy.io.hb_write("a.hb", X)
    data = read("a.hb")
    assert not data.labelled
    np.testing.assert_array_equal(data.X.to_dense(), X.toarray())
    y = np.column_stack((np.arange(9.0), -np.arange(9.0)))
    write_npz("b.npz", Dataset.from_arrays(X.tocsr(), y))
    convert("b.npz", "c.hb")
    np.testing.assert_array_equal(read("c.hb").targets.y, y)
    text = (here / "c.hb").read_text()
    assert text.splitlines()[2].startswith("RRA")
    for old, new, message in (("RRA", "PUA", "a matrix of type 'PUA'"), ("\nF ", "\nM ", "right-hand sides of type")):
        (here / "d.hb").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=f"d.hb: {message}"):
            read("d.hb")
    (here / "d.hb").write_text(text[: len(text) // 3])
    with pytest.raises(InputError, match=r"d\.hb: "):
        read("d.hb")


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [(7, "99", "the file is damaged"), (7, "-9", "the file is damaged"), (4, None, "4 lines, expected a head")],
)
def test_harwell_boeing_that_is_damaged(here, line, text, message):
    """A row beyond the last, before the first; a head alone."""
    scipy.io.hb_write("a.hb", sp.csc_array(np.ones((9, 9)) + np.eye(9)))
    lines = (here / "a.hb").read_text().splitlines()
    assert lines[7] == " 9"
    lines[line:] = [] if text is None else [text, *lines[line + 1 :]]
    (here / "b.hb").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"b\.hb: {message}"):
        read("b.hb", format="harwell_boeing")


def test_what_a_table_must_be_told(here, capsys):
    X, y = np.eye(4), np.arange(8.0).reshape(4, 2)
    data = Dataset.from_arrays(X, y, [1, 2, 1, 1], [0, 0, 1, 1])
    write_npz("a.npz", data)
    assert main(["convert", "a.npz", "b.csv"]) == 0
    told = capsys.readouterr().out.partition("--format '")[2].partition("'")[0]
    assert main(["convert", "b.csv", "c.npz", "--format", told]) == 0
    back = read("c.npz")
    np.testing.assert_array_equal(back.targets.y, y)
    np.testing.assert_array_equal(back.targets.weights, data.targets.weights)
    np.testing.assert_array_equal(back.targets.groups, data.targets.groups)
    write_npz("n.npz", Dataset.from_arrays(X))
    assert convert("n.npz", "n.parquet").format == {"name": "arrow", "label": None}
    assert not read("n.parquet", format={"name": "arrow", "label": None}).labelled


def test_random_columns_are_those_of_the_seed(here):
    data = links()
    write_npz("a.npz", data)
    assert main(["convert", "a.npz", "b.npz", "--columns", "5", "--seed", "3"]) == 0
    kept = np.sort(np.random.default_rng(3).choice(25, 5, replace=False))
    np.testing.assert_array_equal(read("b.npz").X.to_dense(), data.X.to_dense()[:, kept])
    assert main(["convert", "a.npz", "c.store", "--columns", "5", "--seed", "3"]) == 0
    np.testing.assert_array_equal(read("c.store").X.to_dense(), data.X.to_dense()[:, kept])
    convert("sklearn:iris", "iris.csv", columns=2, seed=1)
    assert read("iris.csv").feature_names == ("sepal width (cm)", "petal length (cm)")
    with pytest.raises(InputError, match="columns is 26, expected at most the 25 features"):
        convert("a.npz", "d.npz", columns=26)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b.spardat", "a feature is 5.1, but the format holds features of 0 and 1 alone"),
        ("b.ssv", "a feature is 5.1, but the format holds features of 0 and 1 alone"),
        ("b.parquet.gz", "Parquet and Arrow files are not compressed again"),
        ("b.xlsx", "expected a name that ends in one of .store, .npz"),
    ],
)
def test_what_a_format_cannot_hold(here, name, message):
    with pytest.raises(InputError, match=message):
        convert("sklearn:iris", name)
    assert [path.name for path in here.iterdir() if path.name.startswith("b.")] == []


def test_labels_in_other_formats(here):
    sets = Dataset.from_arrays(np.eye(3), LabelSets.from_rows([["a"], ["a", "b"], []]))
    write_npz("a.npz", sets)
    convert("a.npz", "b.ssv")
    assert read("b.factors.ssv").targets.y.tolist() == [[1, 0], [1, 1], [0, 0]]
    for name in ("c.csv", "c.hb", "c.spardat"):
        with pytest.raises(InputError, match="sets of labels"):
            convert("a.npz", name)
    write_npz("t.npz", Dataset.from_arrays(np.eye(3), ["no", "yes", "no"]))
    convert("t.npz", "t.csv")
    assert (here / "t.csv").read_text().splitlines()[1] == "1,0,0,no"
    with pytest.raises(InputError, match="not text"):
        convert("t.npz", "t.spardat")
    write_npz("w.npz", Dataset.from_arrays(np.eye(2), [0, 1], [1, 2]))
    with pytest.raises(InputError, match="the format holds no weights"):
        convert("w.npz", "w.hb")


def test_training_on_one_and_predicting_another(here, capsys):
    data = links()
    write_npz("a.npz", data)
    for name in ("b.spardat", "b.ssv", "b.svm"):
        convert("a.npz", name)
    assert main(["train", "b.spardat:0.5+", "--loss", "logistic", "--output", "r", "--quiet"]) == 0
    capsys.readouterr()
    printed = []
    for name in ("b.spardat:0.5+", "b.spardat", "b.factors.ssv:b.activations.ssv:target"):
        assert main(["predict", "r", name]) == 0
        found = capsys.readouterr()
        printed.append(found.out)
        assert "auc" in found.err  # measures where there are targets
    assert len(set(printed)) == 1
    parts = [scan("b.spardat", part=part, parts=3).data.rows for part in range(3)]
    assert sum(parts) == 60


def test_targets_line_by_line(here, capsys):
    assert main(["info", "sp.txt:42.42+", "--targets"]) == 0
    assert capsys.readouterr().out == "1\n0\n1\n0\n"
    assert main(["info", "sp.txt", "--format", "spardat", "--targets", "--json"]) == 0
    assert capsys.readouterr().out == "50.0\n-2.5\n42.42\n0.0\n"
    scipy.io.hb_write("a.hb", sp.eye(3, format="csc"))
    assert main(["info", "a.hb", "--targets"]) == 2
    assert "a.hb: the rows have no targets" in capsys.readouterr().err
    assert main(["info", "--targets"]) == 2
