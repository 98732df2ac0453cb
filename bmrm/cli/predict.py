"""`bmrm predict`: scores, labels, probabilities or ranks of rows, a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.app.profile import text_of as _text
from bmrm.cli._core.arguments import add_data, add_model, format_of, model_file

if TYPE_CHECKING:
    import argparse

    from bmrm.cli._core.parser import Parser


def add_arguments(parser: Parser) -> None:
    """Model, data, what to write and where."""
    parser.examples("bmrm predict runs/a9a new.svm --labels --out labels.txt")
    add_model(parser)
    add_data(parser)
    parser.add_argument("--out", help="file for the result, a row per line; default: standard output")
    parser.add_argument("--labels", action="store_true", help="write predicted labels or numbers instead of scores")


def run(parsed: argparse.Namespace) -> int:
    """Write a line for each row."""
    from bmrm.app.model import load_model
    from bmrm.data.files import whole_file

    model = load_model(model_file(parsed.model))
    data = model.read(parsed.data, format_of(parsed), labelled=False)
    result = model.predict(data) if parsed.labels else model.decision_function(data)
    lines = _lines(result)
    if model.reader is not None and data.targets.groups is not None:
        lines = _spaced(lines, data.targets.groups.tolist())
    if parsed.out is None:
        for line in lines:
            print(line)
        return 0
    with whole_file(Path(parsed.out)) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
    return 0


def _lines(result: Any) -> Iterator[str]:
    """A line for each row: a number, several of them, a label, or a set of labels with commas between."""
    import numpy as np

    if isinstance(result, list):
        return (",".join(map(_text, sorted(row))) for row in result)
    if not isinstance(result, np.ndarray):
        result = result.toarray()
    if result.dtype.kind == "M":
        return iter(np.datetime_as_string(result).tolist())
    if result.dtype.kind == "m":
        return (str(value) for value in result)
    rows = result.tolist()
    return (" ".join(map(_text, row)) if isinstance(row, list) else _text(row) for row in rows)


def _spaced(lines: Iterable[str], groups: Sequence[int]) -> Iterator[str]:
    """The lines with an empty one between sentences, as in the file that was read."""
    before = groups[0] if groups else None
    for line, sentence in zip(lines, groups, strict=True):
        if sentence != before:
            yield ""
        before = sentence
        yield line
