"""Functions of yeast genes in the FunCat tree, or generated classes in a small tree."""

from __future__ import annotations

import csv
import lzma
from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz
from mpi_examples.prepare import write_split

ROOT = "root"


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz`, `test.npz` and `tree.txt`, a line `child parent` for each edge.

    A gene has several functions: its row stands once for each of them, with weights that add up to 1.
    """
    if shared is None:
        write_split(folder, _generated(folder / "tree.txt"))
        return "no ../shared/data: generated classes in a tree instead of cellcycle"
    parts = {part: _arff(shared / f"cellcycle_FUN.{part}.arff.xz") for part in ("train", "valid", "test")}
    _write_tree(folder / "tree.txt", parts["train"][2])
    known = np.vstack([parts["train"][0], parts["valid"][0]])
    mean = np.nanmean(known, axis=0)
    labels = [*parts["train"][1], *parts["valid"][1]]
    write_npz(folder / "train.npz", _repeated(known, labels, mean))
    write_npz(folder / "test.npz", _repeated(*parts["test"][:2], mean))
    return "cellcycle, training and validation rows to learn; missing values are means, a row stands for each function"


def _arff(path: Path) -> tuple[np.ndarray, list[list[str]], list[str]]:
    """Numbers (nan where missing), the labels of each row, and the names of the tree."""
    names: list[str] = []
    with lzma.open(path, "rt") as text:
        for line in text:
            if "hierarchical" in line:
                names = line.split()[-1].split(",")
            if line.strip().upper() == "@DATA":
                break
        rows = [row for row in csv.reader(text) if row]
    X = np.array([[float("nan") if field == "?" else float(field) for field in row[:-1]] for row in rows])
    return X, [row[-1].split("@") for row in rows], names


def _write_tree(path: Path, names: list[str]) -> None:
    """01/02/03 hangs on 01/02, which hangs on 01, which hangs on the root."""
    edges = [(name, name.rpartition("/")[0] or ROOT) for name in names]
    path.write_text("".join(f"{child} {parent}\n" for child, parent in edges))


def _repeated(X: np.ndarray, labels: list[list[str]], mean: np.ndarray) -> Dataset:
    counts = np.array([len(row) for row in labels])
    filled = np.repeat(np.where(np.isnan(X), mean, X), counts, axis=0)
    return Dataset.from_arrays(filled, [name for row in labels for name in row], np.repeat(1.0 / counts, counts))


def _generated(tree: Path) -> Dataset:
    """Clouds around centres that lie near those of their parents."""
    rng = np.random.default_rng(0)
    names = [f"{i:02d}" for i in range(5)]
    names += [f"{top}/{j:02d}" for top in names[:5] for j in range(4)]
    _write_tree(tree, names)
    centres = {ROOT: np.zeros(20)}
    for name in names:
        centres[name] = centres[name.rpartition("/")[0] or ROOT] + rng.normal(size=20) / (1 + name.count("/"))
    y = rng.choice(names, size=4000)
    return Dataset.from_arrays(np.array([centres[name] for name in y]) + rng.normal(size=(4000, 20)), y)
