"""Files of sample weights: one number per line."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np

from bmrm.data.files import open_text
from bmrm.problem import InputError, Vector


def read_weights(path: str | Path) -> Vector:
    """The weights of all rows, float64, each finite and >= 0, in the order of the rows.

    Blank lines and text after a '#' are skipped. The file may be compressed by gzip, bzip2 or xz.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    path = Path(path)
    weights = array("d")
    with open_text(path) as file:
        for line, text in enumerate(file, start=1):
            token = text.split("#", 1)[0].strip()
            if not token:
                continue
            try:
                weight = math.nan if "_" in token else float(token)
            except ValueError:
                weight = math.nan
            if not 0.0 <= weight < math.inf:
                raise InputError(f"{path}, line {line}: {token!r}, expected a finite number >= 0")
            weights.append(weight)
    if not weights:
        raise InputError(f"{path}: the file has no weights")
    return np.array(weights, np.float64)
