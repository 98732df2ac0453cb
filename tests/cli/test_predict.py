"""`bmrm predict`: what a line says, pieces and pipes, compression, files whole or absent."""

import gzip
import itertools
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

import bmrm
from bmrm.app.predict import lines_of, ranks
from bmrm.cli import main
from bmrm.data.pieces import pieces
from bmrm.data.readers.conll import Conll
from bmrm.data.readers.csv import Csv
from bmrm.data.readers.svmlight import Svmlight
from bmrm.problem import InputError

SMALL = 700
"""Bytes of a piece, so that small files have several."""


@pytest.fixture
def models(rows):
    """two.npz (logistic), three.npz (softmax) and hinge.npz, of the rows of train.svm."""
    X, y = rows
    alike = {"regularizer": bmrm.L2(0.01), "tolerance": 1e-6}
    bmrm.fit(X, y, loss="logistic", bias="free", **alike).save("two.npz")
    bmrm.fit(X, np.arange(80) % 3, loss="softmax", **alike).save("three.npz")
    bmrm.fit(X, y, loss="hinge", **alike).save("hinge.npz")
    return {name: bmrm.load_model(f"{name}.npz") for name in ("two", "three", "hinge")}


def predicted(model, source, what, format="auto", size=SMALL):
    return list(lines_of(model, str(source), format, what, size))


def test_probabilities_are_those_of_the_formulas(models, rows):
    X, _ = rows
    found = np.array([line.split() for line in predicted(models["two"], "train.svm", "probabilities")], float)
    f = X[:60] @ models["two"].weights + models["two"].intercept
    np.testing.assert_allclose(found, np.stack((1 / (1 + np.exp(f)), 1 / (1 + np.exp(-f))), axis=1), rtol=1e-12)
    found = np.array([line.split() for line in predicted(models["three"], "train.svm", "probabilities")], float)
    e = np.exp(X[:60] @ models["three"].weights + models["three"].intercept)
    np.testing.assert_allclose(found, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    assert models["two"].predict_proba(np.array([[1e4] * 5])).sum() == 1.0


def test_several_columns_have_a_header_of_labels(models, capsys):
    assert main(["predict", "three.npz", "test.svm", "--probabilities"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["0", "1", "2"]
    assert lines == predicted(models["three"], "test.svm", "probabilities")
    assert main(["predict", "three.npz", "test.svm", "--no-header"]) == 0
    assert capsys.readouterr().out.splitlines() == predicted(models["three"], "test.svm", "scores")
    assert main(["predict", "two.npz", "test.svm", "--labels", "--header"]) == 0
    assert capsys.readouterr().out.splitlines() == ["label", *predicted(models["two"], "test.svm", "labels")]


@pytest.mark.parametrize("what", ["--labels", "--scores", "--probabilities"])
def test_measures_of_labelled_rows_are_on_standard_error(models, rows, capsys, what, monkeypatch):
    X, y = rows
    monkeypatch.setattr("bmrm.app.predict.lines_of.__defaults__", (SMALL,))
    assert main(["predict", "two.npz", "train.svm", what]) == 0
    said = dict(line.split() for line in capsys.readouterr().err.splitlines())
    accuracy = np.mean(models["two"].predict(X[:60]) == y[:60])
    assert float(said["accuracy"]) == pytest.approx(accuracy, rel=1e-5)
    assert said.keys() == {"accuracy", "auc", "log_loss"}
    assert main(["predict", "two.npz", "train.svm", what, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_no_measures_where_the_model_does_not_know_the_labels(models, capsys):
    text = "".join(f"0 {line.split(' ', 1)[1]}\n" for line in Path("train.svm").read_text().splitlines())
    Path("zeros.svm").write_text(text)
    assert main(["predict", "two.npz", "zeros.svm"]) == 0
    assert capsys.readouterr().err == ""


def test_marginals_are_sums_over_all_labelings():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(9, 2)), np.array(list("abcabcabc"))
    groups = np.repeat([0, 1], [4, 5])
    for transitions in ("constant", "observed"):
        loss = {"name": "chain_crf", "transitions": transitions}
        model = bmrm.fit(X, y, groups=groups, loss=bmrm.losses.LOSSES.make(*_named(loss)), regularizer=bmrm.L2(0.05))
        found = model.predict_proba(X, groups)
        f = model.decision_function(X)
        steps = f[:, 3:].reshape(9, 3, 3) if transitions == "observed" else np.zeros((9, 3, 3))
        T = model.arrays["transitions"]
        for start, stop in ((0, 4), (4, 9)):
            chances = np.zeros((stop - start, 3))
            for labels in itertools.product(range(3), repeat=stop - start):
                score = sum(f[start + t, label] for t, label in enumerate(labels))
                pairs = enumerate(itertools.pairwise(labels), start + 1)
                weight = np.exp(score + sum(T[a, b] + steps[t, a, b] for t, (a, b) in pairs))
                chances[np.arange(stop - start), labels] += weight
            np.testing.assert_allclose(found[start:stop], chances / chances.sum(axis=1, keepdims=True), rtol=1e-9)


def _named(section):
    return section["name"], {key: value for key, value in section.items() if key != "name"}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=30))
def test_ranks_are_places_by_falling_score(pairs):
    groups, scores = np.array([a for a, _ in pairs]), np.array([float(b) for _, b in pairs])
    for k, rank in enumerate(ranks(scores, groups)):
        before = [j for j in range(len(pairs)) if groups[j] == groups[k] and (-scores[j], j) < (-scores[k], k)]
        assert rank == len(before) + 1
    assert sorted(ranks(scores, None)) == list(range(1, len(pairs) + 1))


def test_ranks_of_queries(models):
    Path("q.svm").write_text("0 qid:7 1:1\n0 qid:7 1:3\n0 qid:2 1:5\n0 qid:2 1:4\n0 qid:2 1:6\n")
    sign = np.sign(models["hinge"].weights[0])
    expected = ["2", "1", "2", "3", "1"] if sign > 0 else ["1", "2", "2", "1", "3"]
    assert predicted(models["hinge"], "q.svm", "ranks", size=10) == expected
    with pytest.raises(bmrm.IncompatibleError, match="one score per row, the model has 3"):
        predicted(models["three"], "q.svm", "ranks")


@pytest.mark.parametrize("what", ["scores", "labels", "probabilities", "ranks"])
def test_pieces_give_what_the_whole_gives(models, what):
    whole = predicted(models["two"], "train.svm", what, size=1 << 20)
    assert predicted(models["two"], "train.svm", what) == whole
    assert len(whole) == 60


def test_rows_without_labels_and_compressed(models):
    plain = predicted(models["two"], "test.svm", "scores")
    bare = "\n".join(line.split(" ", 1)[1] for line in Path("test.svm").read_text().splitlines())
    Path("bare.svm").write_text(bare)
    Path("bare.svm.gz").write_bytes(gzip.compress(bare.encode()))
    assert predicted(models["two"], "bare.svm", "scores") == plain
    assert predicted(models["two"], "bare.svm.gz", "scores") == plain


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_in_and_a_compressed_file_out(models, bmrm_command, folder, packed):
    text = Path("train.svm").read_bytes()
    command = [sys.executable, "-m", "bmrm.cli", "predict", "two.npz", "-", "--out", "s.txt.gz"]
    done = subprocess.run(command, input=gzip.compress(text) if packed else text, capture_output=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"accuracy ")
    lines = gzip.decompress(Path("s.txt.gz").read_bytes()).decode().splitlines()
    assert lines == predicted(models["two"], "train.svm", "scores")
    again = bmrm_command("predict", "two.npz", "train.svm", "--scores")
    assert again.stdout.splitlines() == lines


def test_a_wrong_line_is_named_and_no_file_appears(models, capsys, monkeypatch):
    monkeypatch.setattr("bmrm.app.predict.lines_of.__defaults__", (SMALL,))
    lines = Path("train.svm").read_text().splitlines(keepends=True)
    lines[47] = "1 2:x\n"
    Path("bad.svm").write_text("".join(lines))
    Path("out.txt").write_text("older\n")
    assert main(["predict", "two.npz", "bad.svm", "--out", "out.txt"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm: bad.svm, line 48: ")
    assert len(said.splitlines()) == 1
    assert Path("out.txt").read_text() == "older\n"
    assert sorted(path.name for path in Path().glob(".*")) == []


def test_columns_by_name_in_pieces(folder):
    random = np.random.default_rng(0)
    table = random.normal(size=(90, 3)).round(3)
    y = np.where(table[:, 0] > 0, "yes", "no")
    rows = [",".join(map(str, x)) + f",{a}" for x, a in zip(table.tolist(), y)]
    Path("a.csv").write_text("u,v,w,label\n" + "\n".join(rows) + "\n")
    assert main(["train", "a.csv", "--quiet", "--lambda", "0.01", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    shuffled = "w,u,v\n" + "".join(f"{x[2]},{x[0]},{x[1]}\n" for x in table.tolist())
    Path("b.csv").write_text(shuffled)
    assert predicted(model, "b.csv", "labels", size=300) == model.predict(table).tolist()
    Path("b.csv").write_text(shuffled.replace(f"{table[70, 1]}\n", "x\n"))
    with pytest.raises(InputError, match=r"^b.csv, line 72, column 'v': 'x'"):
        predicted(model, "b.csv", "labels", size=300)


def test_features_from_0_that_only_a_later_piece_shows_are_refused(models):
    Path("zero.svm").write_text("1 1:1 2:1\n" * 200 + "1 0:1\n")
    with pytest.raises(InputError, match=r"^zero\.svm: feature number 0, expected numbers from 1"):
        predicted(models["two"], "zero.svm", "scores")


@pytest.mark.parametrize(
    "words", [["predict", "out/model.npz"], ["evaluate", "out/model.npz"], ["train", "train.svm", "--test"]]
)
def test_a_config_is_not_read_as_the_rows_of_the_training_were(rows, capsys, words):
    assert main(["train", "train.svm", "--loss", "logistic", "--lambda", "0.1", "--output", "out", "--quiet"]) == 0
    assert main([*words, "out/config.yaml"]) == 2
    assert "out/config.yaml: a config by its name" in capsys.readouterr().err


def test_what_a_model_does_not_give_is_one_line(models, capsys):
    assert main(["predict", "hinge.npz", "test.svm", "--probabilities"]) == 2
    assert "hinge has no probabilities" in capsys.readouterr().err
    Path("empty.svm").write_text("# nothing\n")
    assert main(["predict", "hinge.npz", "empty.svm"]) == 2
    assert "empty.svm: the file has no rows" in capsys.readouterr().err


class Stream:
    """Bytes in blocks as a pipe gives them."""

    def __init__(self, text):
        self.text = text

    def read(self, size):
        part, self.text = self.text[:size], self.text[size:]
        return part


LINE = st.sampled_from([b"1 qid:1 1:2", b"1 qid:2 3:4", b"# no row", b"", b"0 1:1", b"-1 2:1 # qid:5"])
CELL = st.sampled_from([b"1", b'"a\nb"', b'"x,""y"', b"", b"2.5"])
TOKEN = st.sampled_from([b"a B", b"the DT", b"", b"  ", b"x y"])


@given(st.lists(LINE, max_size=30), st.integers(1, 60), st.booleans())
def test_pieces_of_svmlight_are_the_file_and_part_no_group(lines, size, ends):
    text = b"\n".join(lines) + b"\n" * ends
    got = _pieces(text, Svmlight(), size)
    kept = [line for piece in got for line in piece.split(b"\n") if line.split(b"#")[0].strip()]
    assert kept == [line for line in lines if line.split(b"#")[0].strip()]
    for one, other in itertools.pairwise(got):
        last, first = (_groups(piece) for piece in (one, other))
        assert not (last and first and last[-1] == first[0] and last[-1].startswith(b"qid"))


def _groups(piece):
    rows = [line.split(b"#")[0].split() for line in piece.split(b"\n")]
    return [row[1] for row in rows if len(row) > 1]


def _pieces(text, format, size):
    found = []
    with suppress(InputError):  # a text without rows
        found.extend(piece.path.read_bytes() for piece in pieces(Stream(text), "f", format, "", size))
    return found


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=20), st.integers(1, 40))
def test_pieces_of_csv_part_no_quoted_field_and_repeat_the_names(records, size):
    import csv
    import io

    text = b"one,two\n" + b"\n".join(b",".join(record) for record in records)
    got = _pieces(text, Csv(), size)
    tables = [list(csv.reader(io.StringIO(piece.decode(), newline=""))) for piece in got]
    whole = [row for row in csv.reader(io.StringIO(text.decode(), newline="")) if any(map(str.strip, row))]
    assert all(table[0] == ["one", "two"] for table in tables)
    assert [row for table in tables for row in table[1:] if any(map(str.strip, row))] == whole[1:]


@given(st.lists(TOKEN, max_size=30), st.integers(1, 40))
def test_pieces_of_conll_part_no_sentence(lines, size):
    text = b"\n".join(lines)
    sentences = [block for piece in _pieces(text, Conll(), size) for block in _sentences(piece)]
    assert sentences == _sentences(text)


def _sentences(text):
    blocks = [[]]
    for line in text.split(b"\n"):
        blocks[-1].append(line) if line.strip() else blocks.append([])
    return [block for block in blocks if block]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(models, folder):
    """A file of 160 MB takes no more than one of 20 (and the pieces) do."""
    block = Path("train.svm").read_text() * 300

    def peak(blocks):
        with open("big.svm", "w") as file:
            for _ in range(blocks):
                file.write(block)
        program = "import resource, sys; from bmrm.cli import main; main(sys.argv[1:]);"
        program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        command = [sys.executable, "-c", program, "predict", "two.npz", "big.svm", "--out", "s.txt"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        return int(done.stderr.splitlines()[-1]) / 1024

    few, many = peak(20), peak(150)
    assert Path("big.svm").stat().st_size > 150e6
    assert many < few + 30.0


def test_a_loss_of_ones_own_is_named(folder, capsys, monkeypatch):
    (folder / "my_own.py").write_text(
        "from dataclasses import dataclass\nimport numpy as np\nimport bmrm\n\n\n@dataclass(frozen=True)\n"
        "class Pinball(bmrm.RegressionLoss):\n    tau: float = bmrm.parameter(0.5, doc='share', above=0.0, below=1.0)\n"
        "    def value(self, f, y):\n        return np.maximum(self.tau * (y - f), (self.tau - 1.0) * (y - f))\n"
        "    def slope(self, f, y):\n        return np.where(y > f, -self.tau, 1.0 - self.tau)\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    train = ["train", "sklearn:diabetes", "--loss", "my_own:Pinball", "--loss.tau", "0.9", "--bias", "free"]
    assert main([*train, "--output", "own", "--quiet"]) == 0
    assert main(["predict", "own", "sklearn:diabetes", "--labels"]) == 2
    assert "load_model(path, loss=...), or --loss my_own:Pinball" in capsys.readouterr().err
    assert main(["predict", "own", "sklearn:diabetes", "--labels", "--loss", "my_own:Pinball"]) == 0
    _, y = load_diabetes(return_X_y=True)
    below = np.array(capsys.readouterr().out.split(), float) > y
    assert below.mean() == pytest.approx(0.9, abs=0.02)
    assert main(["evaluate", "own", "sklearn:diabetes", "--loss", "my_own:Pinball", "--metrics", "mae"]) == 0
    assert main(["predict", "own", "sklearn:diabetes", "--loss", "hinge"]) == 2
    assert "--loss: expected my_own:Pinball" in capsys.readouterr().err


def test_a_loss_of_ones_own_with_a_name_of_its_own(folder, bmrm_command):
    (folder / "my_named.py").write_text(
        "from dataclasses import dataclass\nimport bmrm\n\n\n@bmrm.register_loss('half_square')\n"
        "@dataclass(frozen=True)\nclass HalfSquare(bmrm.RegressionLoss):\n    smooth = True\n"
        "    def value(self, f, y):\n        return 0.5 * (f - y) ** 2\n"
        "    def slope(self, f, y):\n        return f - y\n"
    )
    chosen = ("--loss", "my_named:HalfSquare")
    trained = bmrm_command("train", "sklearn:diabetes", *chosen, "--output", "named", "--quiet")
    assert trained.returncode == 0, trained.stderr
    done = bmrm_command("predict", "named", "sklearn:diabetes", "--labels", *chosen)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(load_diabetes().target)
