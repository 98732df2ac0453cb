"""Digests that tell whether two risks are the same function."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import features_of
from bmrm.problem import Loss, Summary
from bmrm.problem.abilities import Fingerprint
from bmrm.risk.products import Columns


@dataclass(frozen=True, eq=False)
class DataIdentity:
    """The ability `Fingerprint` of a loss over rows of features."""

    data: Dataset
    loss: Loss
    summary: Summary
    columns: Columns
    bias: bool

    def fingerprint(self) -> str:
        """SHA-256 over the arrays, the loss with its parameters, the label order, the scaling and the bias."""
        digest = hashlib.sha256()
        X, targets = self.data.X, self.data.targets
        arrays: list[Any] = [*features_of(X).arrays()]
        arrays += [targets.weights, targets.groups, self.columns.scale, self.columns.shift]
        arrays += [] if targets.structure is None else [targets.structure]
        for array in arrays:
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        digest.update(_text(targets.y).encode())
        kind = type(self.loss)
        facts = (kind.__module__, kind.__qualname__, self.loss, dataclasses.astuple(self.summary), self.bias, X.shape)
        digest.update(repr(facts).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Prefixed:
    """The identity of a wrapped risk."""

    prefix: str
    inner: Fingerprint

    def fingerprint(self) -> str:
        """That of the risk inside, marked."""
        return f"{self.prefix}:{self.inner.fingerprint()}"


def _text(y: Any) -> str:
    """Targets of any kind as text; equal targets give equal text."""
    if isinstance(y, np.ndarray):
        return hashlib.sha256("\n".join(map(str, y.ravel().tolist())).encode()).hexdigest()
    return repr([row.tolist() for row in y])
