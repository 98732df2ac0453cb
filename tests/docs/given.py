"""Files that the reader of a page has: written into its folder by name, few rows of what the page speaks of."""

from __future__ import annotations

import gzip
import math
import shutil
from collections.abc import Callable
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_svmlight
from tests.pages import ROOT

SENTENCES = "the DT B-NP\ncat NN I-NP\nsat VBD B-VP\n\na DT B-NP\ndog NN I-NP\nran VBD B-VP\n\n"
CONFIG = """\
data: {train: "sklearn:breast_cancer", scale: standardize}
loss: logistic
regularizer: {name: l2, lambda: 1.0e-3}
output: {directory: runs/cancer}
"""


def bring(name: str, folder: Path) -> None:
    """Write the file or folder of this name.

    Raises
    ------
    KeyError
        Where no page has such a file.
    """
    if name.startswith("runs/"):
        loss = name.removeprefix("runs/")
        assert main(["train", "sklearn:breast_cancer", "--loss", loss, "--output", str(folder / name), "--quiet"]) == 0
    else:
        FILES[name](folder / name)


def _rows(begin: int, end: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        X, y = load_breast_cancer(return_X_y=True)
        write_svmlight(path, Dataset.from_arrays((X / X.max(axis=0))[begin:end], y[begin:end]))

    return write


def _packed(path: Path) -> None:
    _rows(400, 420)(path.with_suffix(".svm"))
    path.write_bytes(gzip.compress(path.with_suffix(".svm").read_bytes()))
    path.with_suffix(".svm").unlink()


def _table(delimiter: str, label: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        X, y = load_breast_cancer(return_X_y=True)
        lines = [["age", "income", "city_size", label]]
        lines += [[*map(str, x[:3]), "yes" if target else "no"] for x, target in zip(X.tolist(), y)]
        path.write_text("".join(f"{delimiter.join(line)}\n" for line in lines))

    return write


def _census(path: Path) -> None:
    towns, notes = ("Oslo", "Bergen", ""), ("quiet street", "by the sea")
    rows = [f"{20 + 3 * k % 50},{towns[k % 3]},{k % 4},{notes[k % 2]},{'high' if k % 5 else 'low'}" for k in range(60)]
    path.write_text("age,town,zone,note,pay\n" + "".join(f"{row}\n" for row in rows))


def _policies(begin: int, end: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        rows = [(k, 0.25 * (1 + k % 4), 18 + 7 * k % 60) for k in range(begin, end)]
        lines = [f"{age},{math.log(exposure)!r},{(k % 3) * (age < 40)}\n" for k, exposure, age in rows]
        path.write_text("age,log_exposure,claims\n" + "".join(lines))

    return write


def _copy(path: Path) -> None:
    shutil.copytree(ROOT / path.name, path, ignore=shutil.ignore_patterns("__pycache__"))


FILES: dict[str, Callable[[Path], object]] = {
    "a9a.svm": _rows(0, 300),
    "a9a.t": _rows(300, 400),
    "new.svm": _rows(400, 420),
    "logs.gz": _packed,
    "data.csv": _table(",", "outcome"),
    "census.csv": _census,
    "policies.csv": _policies(0, 60),
    "new.csv": _policies(60, 80),
    "train.tsv": _table("\t", "outcome"),
    "train.txt": lambda path: path.write_text(5 * SENTENCES),
    "test.txt": lambda path: path.write_text(SENTENCES),
    "new.txt": lambda path: path.write_text("a DT\ncat NN\nran VBD\n"),
    "config.yaml": lambda path: path.write_text(CONFIG),
    "mpi_examples": _copy,
    "tests": _copy,
}
