"""NULs in the names of files and words of thousands of characters: one short line, wherever they stand."""

import pytest

import bmrm
from bmrm.cli import main
from bmrm.problem import InputError

NUL, LONG, NAME = "a\0b", "9" * 5000, "z" * 5000


@pytest.fixture
def run(folder, rows):
    assert main(["train", "train.svm", "--output", "out", "--quiet"]) == 0


NULS = [
    ["train", "train.svm", "--output", NUL],
    ["train", NUL, "--output", "new"],
    ["train", "train.svm", "--test", NUL, "--output", "new"],
    ["train", "train.svm", "--set", f"start={NUL}", "--output", "new"],
    ["train", f"{NUL}.yaml"],
    ["predict", NUL, "test.svm"],
    ["predict", "out", NUL],
    ["predict", "out", "test.svm", "--out", NUL],
    ["show", NUL],
    ["evaluate", "out", NUL],
    ["report", NUL],
    ["report", "out", "--out", NUL],
    ["compare", NUL, "out"],
    ["info", NUL],
    ["init", NUL],
    ["init", "train.svm", "--out", NUL],
    ["warm", f"{NUL}.yaml"],
    ["check", NUL],
    ["train", f"sklearn:{NUL}", "--output", "new"],
]
LONGS = [
    ["train", "train.svm", "--output", NAME],
    ["predict", "out", NAME],
    ["show", NAME],
    ["report", NAME],
    ["info", NAME],
    ["train", "train.svm", "--output", "new", "--lambda", LONG],
    ["train", "train.svm", "--output", "new", "--max-iterations", LONG],
    ["train", "train.svm", "--output", "new", "--metrics", f"ndcg@{LONG}"],
    ["train", "train.svm", "--output", "new", "--set", f"data.dimension={LONG}"],
    ["train", "train.svm", "--output", "new", f"--{LONG}"],
    ["train", "train.svm", "--output", "new", "--loss", LONG],
    ["train", f"synthetic:sparse_binary?rows={LONG}", "--output", "new"],
    ["show", "out", "--top", LONG],
    ["evaluate", "out", "test.svm", "--folds", LONG],
    ["warm", "hinge", "--processes", LONG],
    [LONG],
]


@pytest.mark.parametrize("words", NULS + LONGS, ids=lambda words: " ".join(words).replace("\0", "NUL")[:40])
def test_one_short_line_and_status_2(run, folder, capsys, words):
    capsys.readouterr()
    try:
        status = main(words)
    except SystemExit as leave:
        status = leave.code
    said = capsys.readouterr().err
    assert status == 2, said
    assert said.startswith("bmrm")
    assert said.count("\n") <= 2  # of YAML, with the place
    assert len(said) < 1000
    assert not (folder / "new").exists()


def test_messages_of_python_are_short_too():
    with pytest.raises(InputError) as caught:
        bmrm.load_model(NAME)
    assert len(str(caught.value)) < 500
    with pytest.raises(InputError) as caught:
        bmrm.fit([[1.0], [2.0]], [0, 1], tolerance=10**5000)
    assert len(str(caught.value)) < 500
    assert str(InputError("x" * 10_000)).startswith("x" * 200 + "...")
    assert str(InputError(" ".join(["word"] * 1000))) == " ".join(["word"] * 1000), "long texts stay"
