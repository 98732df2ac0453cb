"""How fast svmlight text is read, against scikit-learn's loader: `python benchmarks/reading.py [FOLDER] [--runs N]`.

FOLDER holds `NAME.svm.xz` files (default: `shared/data` beside the checkout). Each is unpacked to a temporary file and
read by both in turn in one process on one core; compilation and the first read of the file are left out. The
values are compared to the last bit. Prints medians, the median of the ratios of neighbouring runs and MB/s.
"""

from __future__ import annotations

import argparse
import lzma
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.datasets import load_svmlight_file

from bmrm.data.svmlight import read_svmlight

NAMES = ("w8a", "news20", "a9a", "rcv1_small.train", "usps.train", "mq2008.fold1.train")
DEFAULT = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(path: Path) -> None:
    X, y = load_svmlight_file(str(path))
    data = read_svmlight(path)
    ours = data.X.to_scipy()
    for mine, theirs in ((ours.indptr, X.indptr), (ours.indices, X.indices)):
        assert (mine == theirs).all()
    assert ours.data.tobytes() == X.data.tobytes()
    assert data.targets.y.tobytes() == y.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'file':22}{'MB':>8}{'ours s':>10}{'MB/s':>8}{'sklearn s':>11}{'MB/s':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            packed = options.folder / f"{name}.svm.xz"
            if not packed.exists():
                print(f"{name:22} is not in {options.folder}")
                continue
            path = Path(folder) / f"{name}.svm"
            path.write_bytes(lzma.decompress(packed.read_bytes()))
            compare(path)
            pairs = [
                (seconds(lambda: read_svmlight(path)), seconds(lambda: load_svmlight_file(str(path))))  # noqa: B023
                for _ in range(options.runs)
            ]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            size = path.stat().st_size / 1e6
            print(f"{name:22}{size:8.1f}{ours:10.4f}{size / ours:8.0f}{theirs:11.3f}{size / theirs:8.0f}{ratio:8.1f}")


if __name__ == "__main__":
    main()
