"""Attribute files of CRFsuite, and how they and columns of tokens are told apart."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bmrm
from bmrm.cli import main
from bmrm.data.readers._core.formats import by_content
from bmrm.data.readers.crfsuite import Crfsuite
from bmrm.data.reading import read
from bmrm.problem import InputError

ATTRIBUTES = "B-NP\tw[0]=He\tpos[0]=PRP\t__BOS__\nO\tw[0]=runs\tpos[0]=VBZ\n\nO\tw[0]=He\tpos[0]=PRP\n"
COLUMNS = "He PRP B-NP\nruns VBZ O\n\nHe PRP O\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (ATTRIBUTES, "crfsuite"),
        (COLUMNS, "conll"),
        (COLUMNS.replace(" ", "\t"), "conll"),
        ("a B\n\n, O\n. O\n", "conll"),
        ("1 1:2 3:4\n-1 2:1\n", "svmlight"),
        ("1\n\n2\n", "svmlight"),
        ("1,2,a\n3,4,b\n", "csv"),
        ("1\t2\n\n3\t4\n", "csv"),
        ("x\ty\tlabel\n1\t2\ta\n", "csv"),
    ],
)
def test_formats_are_told_apart_by_content(text, name):
    assert by_content(text.encode(), Path("rows")).name == name


NAME = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
VALUE = st.floats(-1e3, 1e3) | st.just(1.0)
TOKEN = st.tuples(NAME, st.lists(st.tuples(NAME, VALUE), min_size=1, max_size=4))


def escaped(name):
    return name.replace("\\", "\\\\").replace(":", "\\:")


@given(st.lists(st.lists(TOKEN, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans())
def test_attributes_come_back_as_they_were_written(sentences, plain):
    import tempfile

    lines = []
    for sentence in sentences:
        for label, attributes in sentence:
            fields = [escaped(name) + ("" if plain else f":{value!r}") for name, value in attributes]
            lines.append("\t".join([label, *fields]) + "\n")
        lines.append("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.crfsuite"
        path.write_text("".join(lines), newline="")
        raw = Crfsuite().scan(path)
    tokens = [token for sentence in sentences for token in sentence]
    X = np.zeros((len(tokens), len(raw.names.names)))
    for row, (_, attributes) in enumerate(tokens):
        for name, value in attributes:
            X[row, raw.names.names.index(name)] += 1.0 if plain else value
    found = np.zeros_like(X)
    csr = raw.data.X
    for row in range(csr.rows):
        for k in range(csr.indptr[row], csr.indptr[row + 1]):
            found[row, csr.indices[k]] = 1.0 if csr.values is None else csr.values[k]
    np.testing.assert_allclose(found, X, atol=1e-9)
    assert raw.data.targets.y.tolist() == [label for label, _ in tokens]
    assert np.unique(raw.data.targets.groups, return_counts=True)[1].tolist() == [len(one) for one in sentences]


def test_training_and_prediction_of_rows_without_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.crfsuite").write_text((ATTRIBUTES + "\n") * 6)
    words = ["--loss", "chain_crf", "--lambda", "0.01", "--quiet", "--output", "o"]
    assert main(["train", "t.crfsuite", *words]) == 0
    bare = "".join("\t" + line.split("\t", 1)[1] if "\t" in line else line for line in ATTRIBUTES.splitlines(True))
    Path("bare").write_text(bare + "\n\tnew=1\tw[0]=runs\n")
    assert main(["predict", "o", "bare", "--labels"]) == 0
    assert capsys.readouterr().out.split("\n")[:4] == ["B-NP", "O", "", "O"]
    model = bmrm.load_model("o/model.npz")
    assert model.reader.vocabulary.names[:2] == ("pos[0]=PRP", "w[0]=He")


def test_the_same_columns_merged_by_hashing_add_their_values(tmp_path):
    (tmp_path / "t.crfsuite").write_text("a\tx=1:2\ty=1:3\nb\tx=1:0.5\n\n")
    data = read(tmp_path / "t.crfsuite", format={"name": "crfsuite", "hash_bits": 1})
    total = np.zeros(2)
    for row in range(2):
        for k in range(data.X.indptr[row], data.X.indptr[row + 1]):
            total[row] += data.X.values[k]
    assert total.tolist() == [5.0, 0.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tx:y\n", "line 1: attribute 'x:y', expected name or name:number"),
        ("a\tx:inf\n", "line 1: attribute 'x:inf'"),
        ("a\tx\n\ty\n", "line 2: no label, expected one as before"),
        ("\tx\nb\ty\n", "line 2: a label, but none before"),
        ("\n\n", "the file has no tokens"),
        ("a\nb\n", "no token has an attribute"),
    ],
)
def test_wrong_lines_are_named(text, words, tmp_path):
    (tmp_path / "t.crfsuite").write_text(text)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "t.crfsuite")
    assert words in str(caught.value)
