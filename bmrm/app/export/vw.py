"""The model file of Vowpal Wabbit (`vw -t -i FILE`), version 9; or the text of its `--invert_hash`, to look at.

A file begins with the version and a header whose chunks are hashed in a chain; weights, float32, follow by index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.app.export import register
from bmrm.app.export._core.exported import NAMES, TEXT_LABELS, Exported
from bmrm.app.export._core.murmur import murmur3
from bmrm.app.profile import text_of
from bmrm.problem import IncompatibleError, shown
from bmrm.registry import parameter

VERSION = "9.0.0"
"""Of the file: later programs read it, too."""
CONSTANT = 11650396
"""The number of VW's constant feature."""
LEAST, MOST = 18, 31
"""Bits of the index of a weight."""
LARGEST = float(np.finfo(np.float32).max)
"""Scores are cut to what is written as the smallest and the largest label."""
PARTING = set(" \t:|\n\r")
"""Characters that end the name of a feature in the text that VW reads."""
BREAKING = set(",\"'\\")
"""Others that mean something in the list of labels."""


@register("vw")
@dataclass(frozen=True)
class Vw:
    """Model file of Vowpal Wabbit: the score of the second of two labels, or one of several; float32 weights."""

    readable: bool = parameter(False, doc="the text of --invert_hash, which VW writes but does not read", example=True)

    says: ClassVar[frozenset[str]] = frozenset({NAMES, TEXT_LABELS})
    instead: ClassVar[str] = "; json, c and onnx say most of these"

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file."""
        table = _Table.of(model)
        stream.writelines(table.text() if self.readable else table.binary())


@dataclass(frozen=True, eq=False)
class _Table:
    """Weights by index."""

    model: Exported
    options: str
    bits: int
    names: list[str]
    index: NDArray[np.int64]
    """Of each weight, (features and the constant, scores)."""

    @classmethod
    def of(cls, model: Exported) -> _Table:
        """With so many bits that no two weights have one index."""
        if model.names is None:
            names = [str(model.first + k) for k in range(model.dim)]
        else:
            names = list(model.names)
            bad = next((name for name in names if not name or PARTING & set(name)), None)
            if bad is not None:
                raise IncompatibleError(f"export format vw cannot say the name of the feature {shown(bad)}: {NAMED}")
        hashes = np.array([*map(_hash, names), CONSTANT], np.int64)
        stride = 1 << (model.scores - 1).bit_length()  # as VW has it for several classes
        options = f" --oaa {model.scores} --named_labels {_labels(model)}" if model.predicts == "largest" else ""
        for bits in range(LEAST, MOST + 1):
            places = (hashes * stride) & ((1 << bits) - 1)
            if len(np.unique(places)) == len(places):
                return cls(model, options, bits, [*names, "Constant"], places[:, None] + np.arange(model.scores))
        raise IncompatibleError(f"export format vw has no room for {model.dim} features and {model.scores} scores")

    def values(self) -> Iterator[tuple[str, int, float]]:
        """Name, index and weight, those of 0 left out; by index."""
        table = np.vstack((self.model.weights, self.model.intercept))
        order = np.argsort(self.index, axis=None)
        for place in order.tolist():
            row, score = divmod(place, self.model.scores)
            if table[row, score]:
                name = f"{self.names[row]}[{score}]" if score else self.names[row]
                yield name, int(self.index[row, score]), float(table[row, score])

    def chunks(self) -> Iterator[bytes]:
        """The header, as it is hashed."""
        options = f"{self.options}\0".encode()
        yield from (struct.pack("<I", 1), b"\0", b"m", struct.pack("<f", -LARGEST), struct.pack("<f", LARGEST))
        yield from (struct.pack("<I", number) for number in (self.bits, 0, 0, 0, len(options)))
        yield options

    @property
    def checksum(self) -> int:
        """Of the header."""
        found = 0
        for chunk in self.chunks():
            found = murmur3(chunk, found)
        return found

    def binary(self) -> Iterator[bytes]:
        """The file that `vw -i` reads."""
        version = f"{VERSION}\0".encode()
        yield struct.pack("<I", len(version)) + version
        yield from self.chunks()
        yield struct.pack("<II", 4, self.checksum) + b"\0"
        for _, index, weight in self.values():
            yield struct.pack("<If", index, weight)

    def text(self) -> Iterator[bytes]:
        """As `vw --invert_hash` writes it."""
        head = {
            "Version ": VERSION,
            "Id ": "",
            "Min label:": -LARGEST,
            "Max label:": LARGEST,
            "bits:": self.bits,
            "lda:": 0,
            "0 ngram:": "",
            "0 skip:": "",
            "options:": self.options,
            "Checksum: ": self.checksum,
        }
        yield "".join(f"{key}{value}\n" for key, value in head.items()).encode()
        yield b":0\n"
        yield from (f"{name}:{index}:{weight!r}\n".encode() for name, index, weight in self.values())


NAMED = "names in VW are without blanks, colons and bars"


def _labels(model: Exported) -> str:
    """The labels as text, with commas between."""
    labels = list(map(text_of, model.labels.tolist()))
    bad = next((label for label in labels if not label or (PARTING | BREAKING) & set(label)), None)
    if bad is not None:
        raise IncompatibleError(
            f"export format vw cannot say the label {shown(bad)}: {NAMED}, labels without commas and quotes"
        )
    return ",".join(labels)


def _hash(name: str) -> int:
    """A whole number is its own hash, as `--hash strings` has it."""
    return int(name) % (1 << 32) if name.isascii() and name.isdigit() else murmur3(name.encode(), 0)
