"""How text files become rows of features, in the same way for training and for prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.readers._core.formats import Format, formats
from bmrm.data.reading import Source, scan
from bmrm.data.vocabulary import MOST_HASH_BITS, Vocabulary
from bmrm.problem import InputError


@dataclass(frozen=True, eq=False)
class TextReader:
    """A format with named features, and their columns in training.

    Attributes
    ----------
    format : `{name: ..., option: value}` with every option; refers to no file.
    vocabulary : the columns.
    """

    format: Mapping[str, Any]
    vocabulary: Vocabulary

    def read(
        self,
        source: Source | PathLike[str],
        format: str | Mapping[str, Any] | Format | None = None,
        *,
        labelled: bool = False,
    ) -> Dataset:
        """The rows of other files, in this format unless another is given, without features that are not known."""
        raw = scan(source, format=self.format if format is None else format)
        if labelled and not raw.data.labelled:
            raise InputError(f"{raw.origin}: no column of labels")
        if raw.names is None:
            raise InputError(f"{raw.origin}: the features have no names, expected {self.format['name']} text")
        return raw.indexed(self.vocabulary).dataset()

    def header(self) -> dict[str, Any]:
        """Its description in a model file, besides `arrays`; for JSON."""
        return {"format": dict(self.format), "hash_bits": self.vocabulary.hash_bits}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The dictionary as plain arrays."""
        return self.vocabulary.arrays()

    @classmethod
    def from_file(cls, header: Any, arrays: Mapping[str, NDArray[Any]]) -> TextReader:
        """The inverse of `header` and `arrays`; InputError where they are damaged."""
        if not isinstance(header, Mapping) or not {"format", "hash_bits"} <= header.keys():
            raise InputError("the description of its text features is damaged")
        bits, options = header["hash_bits"], header["format"]
        if (
            not (bits is None or (type(bits) is int and 1 <= bits <= MOST_HASH_BITS))
            or not isinstance(options, Mapping)
            or "name" not in options
        ):
            raise InputError("the description of its text features is damaged")
        if ":" in str(options["name"]):
            raise InputError(
                f"the format {options['name']!r} is none of ours, and a model file makes nothing be imported"
            )
        formats.make(str(options["name"]), {key: value for key, value in options.items() if key != "name"})
        return cls(dict(options), Vocabulary.from_arrays(arrays, bits))
