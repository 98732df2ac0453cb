"""How fast svmlight text is read, against scikit-learn's loader, on one core."""

from __future__ import annotations

import lzma
import os
import tempfile
from pathlib import Path

from sklearn.datasets import load_svmlight_file

from benchmarks.harness import SHARED, Table, alternated, ratio
from bmrm.data.readers.svmlight import read_svmlight

NAMES = ("w8a", "news20", "a9a", "rcv1_small.train", "usps.train", "mq2008.fold1.train")


def measure() -> Table | None:
    """For the shared sets, unpacked to a temporary file; None where they are missing."""
    if not SHARED.is_dir():
        return None
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = [_row(name, Path(folder)) for name in NAMES]
    finally:
        os.sched_setaffinity(0, usable)
    return Table(
        "Reading svmlight text",
        "Both readers take an unpacked file in the same process, in turn, on one core; the values are the same to the"
        " last bit. The ratio is scikit-learn's time over ours: larger is better.",
        ("file", "MB", "bmrm", "scikit-learn", "ratio"),
        tuple(rows),
    )


def _row(name: str, folder: Path) -> tuple[object, ...]:
    path = folder / f"{name}.svm"
    path.write_bytes(lzma.decompress((SHARED / f"{name}.svm.xz").read_bytes()))
    _check(path)
    times = alternated({"ours": lambda: read_svmlight(path), "theirs": lambda: load_svmlight_file(str(path))})
    size = f"{path.stat().st_size / 1e6:.1f}"
    return name, size, times["ours"], times["theirs"], ratio(times["theirs"], times["ours"])


def _check(path: Path) -> None:
    """The same bits, or the comparison is worth nothing."""
    X, y = load_svmlight_file(str(path))
    data = read_svmlight(path)
    ours = data.X.to_scipy()
    same = ours.data.tobytes() == X.data.tobytes() and data.targets.y.tobytes() == y.tobytes()
    if not (same and (ours.indptr == X.indptr).all() and (ours.indices == X.indices).all()):
        raise AssertionError(f"{path.name}: the readers disagree")
