"""The csv reader: headers, labels, bad fields."""

import gzip

import numpy as np
import pytest

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
            "label,a\nyes,2\n",
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
        ("1,2\n", {"label": 2}, "there are 2 columns"),
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
    with pytest.raises(InputError, match="line 2, column 'Sex': 'M'"):
        read(shared_data / "abalone.csv.xz")
