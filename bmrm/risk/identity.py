"""Digests that tell whether two risks are the same function."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import features_of
from bmrm.problem import Loss, Summary
from bmrm.problem.abilities import Fingerprint
from bmrm.risk.products import Columns


def identity(data: Dataset, loss: Loss, summary: Summary, columns: Columns, bias: bool) -> Fingerprint:
    """Of a loss over rows: SHA-256 of the arrays, the loss with its parameters, label order, scaling and bias."""

    def fingerprint() -> str:
        digest = hashlib.sha256()
        X, targets = data.X, data.targets
        arrays: list[Any] = [*features_of(X).arrays()]
        arrays += [targets.weights, targets.groups, columns.scale, columns.shift]
        arrays += [one for one in (targets.structure, targets.offset) if one is not None]
        for array in arrays:
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        digest.update(_text(targets.y).encode())
        facts = (type(loss).__module__, type(loss).__qualname__, loss, dataclasses.astuple(summary), bias, X.shape)
        digest.update(repr(facts).encode())
        return digest.hexdigest()

    return Fingerprint(fingerprint)


def _text(y: Any) -> str:
    """Targets of any kind as text; equal targets give equal text."""
    if isinstance(y, np.ndarray):
        return hashlib.sha256("\n".join(map(str, y.ravel().tolist())).encode()).hexdigest()
    return repr([row.tolist() for row in y])
