"""Handwritten digits of envelopes, or those of scikit-learn."""

from __future__ import annotations

import shutil
from pathlib import Path

from bmrm.data.reading import read
from bmrm.data.writers import write_svmlight


def write(folder: Path, shared: Path | None) -> str:
    """`train.svm.xz` and `test.svm.xz`."""
    if shared is not None:
        for part in ("train", "test"):
            shutil.copyfile(shared / f"usps.{part}.svm.xz", folder / f"{part}.svm.xz")
        return "USPS, its own split"
    digits = read("sklearn:digits")
    write_svmlight(folder / "train.svm.xz", digits.part(0, 1200))
    write_svmlight(folder / "test.svm.xz", digits.part(1200, digits.rows))
    return "no ../shared/data: the digits of scikit-learn instead of USPS"
