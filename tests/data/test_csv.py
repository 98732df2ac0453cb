"""The csv reader: headers, labels, bad fields."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.app.predict import lines_of
from bmrm.cli import main
from bmrm.data.readers._core.columns import MISSING
from bmrm.data.readers.csv import Csv
from bmrm.data.reading import read
from bmrm.problem import InputError


@pytest.fixture
def write(tmp_path):
    def put(text, name="a.csv"):
        path = tmp_path / name
        path.write_text(text, newline="")
        return path

    return put


def scan(path, part=0, parts=1, **options):
    return Csv(**options).scan(path, part, parts).dataset()


def test_header_and_last_label(write):
    data = scan(write("a,b,y\n1,2.5,0\r\n-3,1e3,1\n\n"))
    np.testing.assert_array_equal(data.X, [[1, 2.5], [-3, 1000]])
    np.testing.assert_array_equal(data.targets.y, [0, 1])


@pytest.mark.parametrize("label", ["y", 1, -2])
def test_label_by_name_or_number(write, label):
    data = scan(write("a,y,b\n1,red,2\n3,blue,4\n"), label=label)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.targets.y, ["red", "blue"])


def test_several_targets(write):
    data = scan(write("a,y,b,z\n1,2,3,4\n5,6,7,8\n"), label=("z", 1))
    np.testing.assert_array_equal(data.X, [[1, 3], [5, 7]])
    np.testing.assert_array_equal(data.targets.y, [[4, 2], [8, 6]])


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("a,y,z\n1,2,red\n", ("y", "z"), "line 2, column 'z': 'red'"),
        ("a,y,z\n1,2,\n", ("y", "z"), "line 2, column 'z': ''"),
        ("a,y,z\n1,inf,2\n", ("y", "z"), "line 2, column 'y': inf"),
        ("a,y,z\n1,2,3\n", ("y", 1), "named twice"),
    ],
)
def test_bad_targets(write, text, label, message):
    with pytest.raises(InputError, match=r"a\.csv") as caught:
        scan(write(text), label=label)
    assert message in str(caught.value)


def test_an_empty_list_of_labels():
    with pytest.raises(InputError, match="empty list"):
        Csv(label=())


def test_no_label_no_header(write):
    data = scan(write("1,2\n3,4\n"), label=None)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.targets.y, [0, 0])


def test_header_of_numbers_needs_to_be_said(write):
    path = write("1,2\n3,4\n")
    assert scan(path).rows == 2
    assert scan(path, header=True).rows == 1
    assert scan(write("a,b\n3,x\n", "b.csv"), header=True).rows == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(write, delimiter):
    path = write(delimiter.join("ab") + "\n" + delimiter.join("12") + "\n")
    assert scan(path, delimiter=None if delimiter != "|" else "|").features == 1


def test_packed_quoted_and_marked(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress('\ufeff"a ""x""",y\n"1.5","two\nlines"\n'.encode()))
    data = read(path)
    np.testing.assert_array_equal(data.X, [[1.5]])
    np.testing.assert_array_equal(data.targets.y, ["two\nlines"])


def test_parts(write):
    path = write("a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(11)))
    whole = scan(path)
    for parts in range(1, 15):
        shares = [scan(path, part, parts) for part in range(parts)]
        np.testing.assert_array_equal(np.concatenate([share.X for share in shares]), whole.X)
        np.testing.assert_array_equal(np.concatenate([share.targets.y for share in shares]), whole.targets.y)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b,y\n1,2,3\n1,x,3\n", {}, "line 3, column 'b': 'x', expected a finite number"),
        ("1,2,3\n\n1,x,3\n", {}, "line 3, column '1': 'x'"),
        (
            "label,a\nyes,2\n1,2\n",
            {},
            "labels are taken from column 'a', another is named by data.format: {name: csv,",
        ),
        ("a,b,y\n1,,3\n", {}, "line 2, column 'b': '', expected a finite number"),
        ("a,b,y\n1,nan,3\n", {}, "line 2, column 'b': nan"),
        ("y,b\n1,2\n1,1e999\n", {"label": "y"}, "line 3, column 'b': inf"),
        ("a,b,y\n1,1_0,3\n", {}, "line 2, column 'b': '1_0'"),
        ("a,b,y\n1,2,inf\n", {}, "line 2, column 'y': inf"),
        ("a,y\n1,b\n2,\n", {}, "line 3: the label is missing"),
        ("a,b,y\n1,2,3\n1,2\n", {}, "line 3: 2 fields, expected 3"),
        ("a,b,y\n1,2,3\n", {"label": "z"}, "0 columns are named 'z'"),
        ("a,b,label\n1,2,3\n", {"label": "labels"}, "did you mean 'label'"),
        ("a,a\n1,2\n", {"label": "a"}, "2 columns are named 'a'"),
        ("1,2\n", {"label": "a"}, "has no header"),
        ("1,2\n", {"label": 2}, "column 2, expected 0 to 1"),
        ("a,b\n", {}, "has no rows"),
        ("\n\n", {}, "has no rows"),
        ('a,b\n1,"2\n', {}, "line 2: "),
        ("", {}, "is empty"),
    ],
)
def test_bad_files(write, text, options, message):
    path = write(text)
    with pytest.raises(InputError, match=r"a\.csv") as caught:
        scan(path, **options)
    assert message in str(caught.value)


def test_bad_delimiter():
    with pytest.raises(InputError, match="expected one character"):
        Csv(delimiter=";;")


@pytest.mark.shared_data
def test_real_file(shared_data):
    data = read(shared_data / "winequality-red.csv.xz")
    assert data.X.shape == (1599, 11)
    assert data.X[0, 0] == 7.4
    assert sorted(set(data.targets.y)) == [3, 4, 5, 6, 7, 8]
    data = read(shared_data / "abalone.csv.xz")
    assert data.feature_names[:4] == ("Sex=F", "Sex=I", "Sex=M", "Length")
    assert data.layout.notes == ("one-hot encoded: 'Sex' (3 levels)",)


NUMBERS = np.random.default_rng(3).normal(size=(30, 4)).round(3)
WHOLE = np.random.default_rng(3).integers(0, 9, size=(30, 4))


def table(names, X=NUMBERS, index=False, **columns):
    """As pandas writes it."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=names).assign(**columns).to_csv(index=index)


TARGET = (NUMBERS[:, 0] > 0).astype(int)
YEARS = [2000, 2001, 2002, 2003]


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (None, {}, True),
        (None, {"X": WHOLE}, True),
        (None, {"X": WHOLE[:, 1:3] + 2}, True),
        (None, {"X": NUMBERS[:, :2], "index": True}, True),
        (None, {"index": True}, True),
        (None, {"target": TARGET}, False),
        (None, {"target": np.where(TARGET, "yes", "no")}, True),
        (None, {"index": True, "target": TARGET}, False),
        (YEARS, {}, True),
        (YEARS, {"index": True}, True),
        ([0.0, 1.0, 2.0, 3.0], {}, True),
        (np.linspace(1100, 1200, 4).tolist(), {}, True),
        ([1, 2, 3, 4], {}, True),
    ],
)
def test_a_header_of_numbers_is_none_of_the_rows(write, names, options, said):
    data = scan(write(table(names, **options)))
    X = options.get("X", NUMBERS)
    expected = X if "target" in options else X[:, :-1]
    np.testing.assert_array_equal(data.X, expected)
    assert data.feature_names == tuple(map(str, range(4) if names is None else names))[: expected.shape[1]]
    assert any("taken for names of columns; data.header: false" in note for note in data.layout.notes) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5.1,3.5,yes\n4.9,3.0,no\n4.7,3.2,yes\n", False),
        ("0,1,2\n3,4,5\n0,1,2\n", True),
        ("0,yes\n1,no\n2,yes\n", False),
        ("1,2,3\n4,5,6\n", True),
        ("0,1\n1,0\n1,1\n0,1\n", True),
        ("0.1,0.2,0.3\n.5,.25,.125\n1.5,0.25,.5\n", True),
        ("3,1,2\n1,2,3\n", False),
        ("7,8\n", False),
    ],
)
def test_rows_of_numbers_are_no_header_and_a_doubt_is_said(write, text, said):
    data = scan(write(text))
    assert data.rows == text.count("\n")
    assert data.feature_names is None
    assert any("is taken for a row; data.header: true" in note for note in data.layout.notes) == said


def test_header_stated(write):
    text = table(None)
    assert scan(write(text), header=False).rows == 31
    assert scan(write(table(None)), header=True).layout.notes == ()
    assert read(write(text), format={"name": "auto", "header": False}).rows == 31
    with pytest.raises(InputError, match=r"a\.svm: data\.header is for csv, not for svmlight"):
        read(write("1 1:2\n", "a.svm"), format={"name": "auto", "header": False})


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (",a,y\n0,5,1\n1,6,0\n", "the first column, which has no name, is left out"),
        (",,a,y\n0,0,5,1\n0,1,6,0\n", "the first 2 columns are left out"),
        ("Unnamed: 0,a,y\n0,5,1\n1,6,0\n", "column 'Unnamed: 0' is left out"),
        ('"","a","y"\n"Mazda RX4",5,1\n"Fiat",6,0\n', "the first column, which has no name, is left out"),
        ('"a","y"\n"1",5,1\n"2",6,0\n', "the first column, which has no name, is left out"),
    ],
)
def test_row_names_and_numbers_are_left_out_aloud(write, text, left_out):
    data = scan(write(text))
    np.testing.assert_array_equal(data.X, [[5], [6]])
    np.testing.assert_array_equal(data.targets.y, [1, 0])
    assert [note for note in data.layout.notes if note.startswith(left_out)]
    if '"' not in text:
        assert scan(write(text), ignore=()).features == text.split("\n")[0].count(",")


def test_a_column_that_counts_the_rows_is_told(write):
    text = "id,a,y\n" + "".join(f"{k + 1},{k * k},{k % 2}\n" for k in range(12))
    data = scan(write(text))
    assert data.features == 2
    assert data.layout.notes == ("column 'id' counts the rows from 1 and is a feature; data.ignore leaves it out",)
    assert scan(write(text), ignore=("id",)).layout.notes == ()


def test_columns_are_ignored_by_name_and_number(write):
    text = "id,a,b,y\nx1,2,3,0\nx2,4,5,1\n"
    for ignore in (("id", "b"), ("id", 2), (0, 2), (0, -2)):
        data = scan(write(text), ignore=ignore)
        np.testing.assert_array_equal(data.X, [[2], [4]])
        assert data.layout.ignored == ("id", "b")
    with pytest.raises(InputError, match=r"0 columns are named 'idd', expected one \(did you mean 'id'\?\)"):
        scan(write(text), ignore=("idd",))
    with pytest.raises(InputError, match=r"column 'y' is the label and in data\.ignore, too"):
        scan(write(text), ignore=("y",), label="y")
    assert scan(write(text), ignore=("y", "id")).layout.labels == ("b",)


def test_a_number_that_is_a_name_elsewhere_is_refused(write):
    with pytest.raises(InputError, match="column 3 may be that of this number, '2', or that of this name"):
        scan(write(table(None, index=True)), label=3)
    np.testing.assert_array_equal(scan(write(table(None, index=True)), label="3").targets.y, NUMBERS[:, 3])
    np.testing.assert_array_equal(scan(write(table(None)), label=3).targets.y, NUMBERS[:, 3])


def test_a_year_names_its_column(write):
    data = scan(write(table(YEARS)), label=2001, ignore=(2003,))
    np.testing.assert_array_equal(data.targets.y, NUMBERS[:, 1])
    assert data.feature_names == ("2000", "2002")
    with pytest.raises(InputError, match="column 2004, expected 0 to 3"):
        scan(write(table(YEARS)), label=2004)


def test_missing_values_are_those_of_pandas(write):
    pandas = pytest.importorskip("pandas")
    assert set(pandas._libs.parsers.STR_NA_VALUES) == MISSING
    for text in MISSING:
        for quoted in (text, f'"{text}"', f" {text} "):
            with pytest.raises(InputError, match=r"line 3: the label is missing \(.* in column 'y'\)"):
                scan(write(f"a,y\n1,b\n2,{quoted}\n"))
            with pytest.raises(InputError, match=r"line 3, column 'a': .*finite number"):
                scan(write(f"a,y\n1,b\n{quoted},b\n"))
            with pytest.raises(InputError, match="line 3: the group is missing"):
                scan(write(f"a,g,y\n1,q,b\n2,{quoted},b\n"), group="g")
    with pytest.raises(InputError, match="line 2: the label is missing"):
        scan(write("a,y\n1,NA\n2,3\n"))


@pytest.mark.parametrize(
    "text",
    [
        "a|b|y\n1|2|0\n3|4|1\n",
        "sep=;\r\na;b;y\r\n1;2;0\r\n3;4;1\r\n",
        '"sep=|"\na|b|y\n1|2|0\n3|4|1\n',
        "# made by me, today\na,b,y\n1,2,0\n3,4,1\n",
        "# x, y, z\n\n# and more\na,b,y\n1,2,0\n3,4,1\n",
        "# a,b,y\n1,2,0\n3,4,1\n",
        "a,b,y\r1,2,0\r3,4,1\r",
        "a,b,y,\n1,2,0,\n3,4,1,\n",
        "a,b,y\n1,2,0,\n3,4,1,\n",
        '"a,1;",b,y\n1,2,0\n3,4,1\n',
    ],
)
def test_dialects(write, text):
    data = scan(write(text))
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.targets.y, [0, 1])
    assert len(data.feature_names) == 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a b y\n1 2 0\n", {}, "one column, 'a b y', expected several with ',' between them"),
        ("a;b;y\n1;2;0\n", {"delimiter": ","}, "data.format: {name: csv, delimiter: ';'}"),
        ("a^b\n1^2\n", {}, "delimiter: '^'"),
        ("a;y\n1,5;0\n", {}, "line 2, column 'a': '1,5', expected a finite number; numbers have a point, not a comma"),
        ("a,y\n1,2\n# end\n", {}, "line 3: 1 fields, expected 2; lines that begin with # are comments before"),
        ("y,b,y\n1,2,0\n", {"label": "y"}, "2 columns are named 'y', those with the numbers 0, 2; state the number"),
        ("a,y\n1,9223372036854775808\n2,9223372036854775809\n", {}, "line 2, column 'y': label '92233720368547"),
        ("x,1,2.5\n1,2,3\n", {}, "line 1, column '0': 'x', expected a finite number; if the first line holds names"),
        ("1,2,\n3,4,5\n", {}, "line 1: the label is missing"),
    ],
)
def test_the_cause_is_named(write, text, options, message):
    with pytest.raises(InputError, match=r"a\.csv") as caught:
        scan(write(text), **options)
    assert message in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_pieces_have_the_head_of_the_whole(write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(table(None, target=TARGET, index=True), "train.csv")
    assert main(["train", "train.csv", "--loss", "logistic", "--quiet", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    expected = model.decision_function(NUMBERS)
    for index in (True, False):
        write(table(None, index=index), "new.csv")
        for size in (60, 1 << 20):
            found = [float(line) for line in lines_of(model, "new.csv", "auto", "scores", size)]
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    write("2,3,1,0\n" + "".join(",".join(map(str, row[[2, 3, 1, 0]])) + "\n" for row in NUMBERS), "new.csv")
    np.testing.assert_allclose([float(line) for line in lines_of(model, "new.csv", "auto", "scores", 60)], expected)
    one = ",".join(map(str, NUMBERS[0]))
    write(f"0,1,2,3\n{one}\n", "new.csv")
    assert [float(line) for line in lines_of(model, "new.csv", "auto", "scores")] == pytest.approx(expected[:1])
    capsys.readouterr()
    assert main(["info", "train.csv"]) == 0
    assert "the first column, which has no name, is left out" in capsys.readouterr().err
    assert main(["info", "train.csv", "--ignore", "0", "--ignore", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 2


def test_without_a_header_in_training_there_is_none_in_prediction(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(table(None, target=TARGET).split("\n", 1)[1], "train.csv")
    assert main(["train", "train.csv", "--loss", "logistic", "--quiet", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    write("0,1,2,3\n.5,.25,.5,.25\n", "new.csv")
    expected = model.decision_function([[0, 1, 2, 3], [0.5, 0.25, 0.5, 0.25]])
    assert [float(line) for line in lines_of(model, "new.csv", "auto", "scores")] == pytest.approx(expected)


def test_header_and_ignore_in_a_config_are_remembered(write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"r{k},{row[0]},{row[1]},{label}" for k, (row, label) in enumerate(zip(NUMBERS, TARGET))]
    write("id,7,b,y\n" + "\n".join(rows) + "\n", "train.csv")
    config = "data: {train: train.csv, test: train.csv, header: true, ignore: [id]}\nloss: logistic\nregularizer: l2\n"
    write(config.replace("l2", "{name: l2, lambda: 0.1}"), "c.yaml")
    assert main(["train", "c.yaml", "--quiet", "--output", "o"]) == 0
    assert main(["train", "train.csv", "--ignore", "id", "--lambda", "0.1", "--quiet", "--output", "p"]) == 0
    model = bmrm.load_model("o/model.npz")
    assert model.feature_names == ("7", "b")
    expected = [repr(score) for score in model.decision_function(NUMBERS[:, :2]).tolist()]
    bare = "".join(f"{row[1]},{row[0]}\n" for row in NUMBERS)
    for text in (Path("train.csv").read_text(), "b,7\n" + bare):
        write(text, "new.csv")
        assert main(["predict", "o", "new.csv", "--out", "s.txt"]) == 0
        assert Path("s.txt").read_text().split() == expected
    assert main(["evaluate", "o", "train.csv", "--json"]) == 0
    capsys.readouterr()
    assert main(["init", "train.csv", "--data.header", "true", "--ignore", "id", "--out", "-"]) == 0
    text = capsys.readouterr().out
    assert '\n  header: true\n  ignore: ["id"]\n' in text
    write(text, "d.yaml")
    assert main(["train", "d.yaml", "--quiet", "--output", "q"]) == 0
    assert bmrm.load_model("q/model.npz").feature_names == ("7", "b")


def test_the_run_says_what_is_not_certain(write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(table(None, X=WHOLE), "train.csv")
    assert main(["train", "train.csv", "--loss", "least_squares", "--output", "o"]) == 0
    said = capsys.readouterr()
    note = "data.train: the first line (0, 1, 2, 3) is taken for names of columns; data.header: false makes it a row"
    assert f"bmrm: {note}\n" in said.err
    assert json.loads(Path("o/summary.json").read_text())["notes"] == [note]
    assert main(["report", "o", "--out", "r.html"]) == 0
    assert note in Path("r.html").read_text()
    assert (
        main(["train", "train.csv", "--loss", "least_squares", "--data.header", "false", "--quiet", "--output", "p"])
        == 0
    )
    assert json.loads(Path("p/summary.json").read_text())["rows"] == 31
    write("data: {train: train.csv, ignore: [1.5]}\n", "c.yaml")
    assert main(["train", "c.yaml"]) == 2
    assert "data.ignore is [1.5], expected a list of columns: names, or numbers from 0" in capsys.readouterr().err


OTHERS = {
    "sep": lambda rows: "sep=;\r\na;b;c\r\n" + "\r\n".join(row.replace(",", ";") for row in rows),
    "comments": lambda rows: "# x\n# y, z\na,b,c\n" + "\n".join(rows),
    "savetxt": lambda rows: "# a,b,c\n" + "\n".join(rows),
    "trailing": lambda rows: "a,b,c,\n" + "".join(f"{row},\n" for row in rows),
    "R": lambda rows: '"a","b","c"\n' + "".join(f'"n{k}",{row}\n' for k, row in enumerate(rows)),
    "labelled": lambda rows: '"","a","b","c","y"\n' + "".join(f'"n{k}",{row},1\n' for k, row in enumerate(rows)),
    "bare": lambda rows: "\n".join(rows) + "\n",
    "bars": lambda rows: "a|b|c\n" + "\n".join(row.replace(",", "|") for row in rows),
    "cr": lambda rows: "a,b,c\r" + "\r".join(rows) + "\r",
    "turned": lambda rows: "c,b,a\n" + "\n".join(",".join(row.split(",")[::-1]) for row in rows),
    "blank": lambda rows: "\n\na,b,c\n\n" + "\n\n".join(rows),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.csv").write_text(table(list("abcy")))
    assert (
        main(["train", str(folder / "train.csv"), "--loss", "least_squares", "--quiet", "--output", f"{folder}/o"]) == 0
    )
    return bmrm.load_model(folder / "o/model.npz")


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("size", [80, 1 << 20])
def test_files_of_other_programs_in_pieces_and_whole(write, trained, kind, size):
    path = write(OTHERS[kind]([",".join(map(str, row)) for row in NUMBERS[:, :3]]), "new.csv")
    found = [float(line) for line in lines_of(trained, str(path), "auto", "scores", size)]
    np.testing.assert_allclose(found, trained.decision_function(NUMBERS[:, :3]))


def test_lines_without_names_that_end_with_a_delimiter(write):
    data = read(write("1,2,3,\n2,3,4,\n"))
    assert data.X.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert data.targets.y.tolist() == [3.0, 4.0]
    assert "each line ends with a delimiter" in " ".join(data.layout.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,y\n"1,000",1\n2,2\n', "line 2, column 'a': '1,000', expected .* one without ','"),
        ("a,y\n1,u\n2,u\0\n", "line 3: a NUL character"),  # NumPy would take it for the label 'u'
    ],
)
def test_fields_that_are_misread_elsewhere(write, text, message):
    with pytest.raises(InputError, match=message):
        read(write(text))
