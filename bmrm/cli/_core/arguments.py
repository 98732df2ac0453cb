"""Arguments that several commands have, and types that say what they expect."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.problem import InputError

if TYPE_CHECKING:
    from bmrm.app.convert import Converted
    from bmrm.app.model import Model
    from bmrm.cli._core.parser import Parser


def count(least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number, `least` or more."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number >= {least}")
        return number

    return read


def share(text: str) -> float:
    """The type of an option that is a number between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number > 0 and < 1")
    return number


def words(given: Sequence[str]) -> list[str]:
    """The words of an option that takes several, with spaces or commas between them."""
    return [one for part in given for one in part.split(",") if one]


def lambdas_of(given: Sequence[str] | None) -> list[float] | None:
    """The numbers of `--lambdas`; None where it is not given."""
    return None if given is None else [_lambda(text) for text in words(given)]


def _lambda(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < math.inf:
        raise InputError(f"--lambdas: {text!r}, expected a number > 0")
    return value


def add_model(parser: Parser) -> None:
    """A model, or the folder of a run."""
    parser.add_argument("model", metavar="MODEL", help="model.npz of a run, or the folder of the run")


def add_loss(parser: Parser) -> None:
    """A loss that no name stands for; a model file alone imports nothing."""
    parser.add_argument(
        "--loss",
        metavar="MODULE:CLASS",
        help="the loss of your own that the model was trained with; the module is imported, and so run",
    )
    parser.add_argument(
        "--kernel",
        metavar="MODULE:FUNCTION",
        help="the kernel of your own in the features that the model was trained with; imported likewise",
    )


def loaded(parsed: argparse.Namespace) -> Model:
    """The model, with the loss that the command line names."""
    from bmrm.app.model import load_model
    from bmrm.app.model_file import from_plain
    from bmrm.losses import LOSSES
    from bmrm.problem import InputError

    path = model_file(parsed.model)
    model = load_model(path)
    if parsed.kernel is not None:
        from bmrm.data.features._core.kernels import imported

        named = {} if model.features is None else model.features.section
        if named.get("kernel") != parsed.kernel:
            raise InputError(f"--kernel: expected {named.get('kernel', 'none')}, with which the model was trained")
        model = load_model(path, kernel=imported(parsed.kernel))
    if parsed.loss is None:
        return model
    trained = model.header["loss"]
    cls = LOSSES.get(parsed.loss).cls
    if trained["name"] not in (parsed.loss, *(entry.name for entry in LOSSES.all() if entry.cls is cls)):
        raise InputError(f"--loss: expected {trained['name']}, with which the model was trained, not {parsed.loss}")
    return replace(model, _loss=from_plain(LOSSES, trained))


def add_data(parser: Parser, more: str = "", needed: bool = True) -> None:
    """A data file with its format."""
    help = f"a file, sklearn:NAME or synthetic:NAME{more}"
    parser.add_argument("data", metavar="DATA", nargs=None if needed else "?", help=help)
    parser.add_argument(
        "--format",
        default="auto",
        metavar="FORMAT",
        help="auto (default: by name and content), the name of a format, or {name: csv, label: 0}",
    )
    parser.add_argument(
        "--data.header",
        dest="data_header",
        choices=("true", "false"),
        help="whether the first line of a csv file that is read holds names; default: by what it holds",
    )
    parser.add_argument(
        "--ignore",
        "--data.ignore",
        action="append",
        metavar="COLUMN",
        help="a column that is left out, by name or number from 0; may be repeated; [] keeps the index of a data frame",
    )


def add_columns(parser: Parser) -> None:
    """What columns of the data are, as in the section `data` of a config."""
    parser.add_argument(
        "--categorical",
        action="append",
        metavar="COLUMN",
        help="a column of numbers that are categories all the same, by name or number from 0; may be repeated",
    )
    parser.add_argument(
        "--text", metavar="COLUMNS", help="columns whose words are features, {column: hashed} or {column: counted}"
    )
    parser.add_argument(
        "--missing",
        choices=("refuse", "mean", "indicator", "zero"),
        default="refuse",
        help="what stands in place of a missing number (default %(default)s)",
    )
    parser.add_argument("--drop-first", action="store_true", help="the first level of each category has no feature")
    parser.add_argument("--rare", type=count(1), metavar="ROWS", help="levels with fewer rows are one")
    parser.add_argument(
        "--offset", metavar="NAME", help="the column with the offset of each row, or a file with one per row"
    )


def columns_of(parsed: argparse.Namespace) -> dict[str, Any]:
    """What was given of these, by the fields of the section `data`."""
    from bmrm.app.config.marks import yaml_value
    from bmrm.app.config.options import columns

    found = {
        "categorical": None if parsed.categorical is None else columns(parsed.categorical, "--categorical"),
        "text": None if parsed.text is None else yaml_value(parsed.text, "--text"),
        "missing": None if parsed.missing == "refuse" else parsed.missing,
        "drop_first": parsed.drop_first or None,
        "rare": parsed.rare,
        "offset": parsed.offset,
    }
    return {name: value for name, value in found.items() if value is not None}


def add_offset(parser: Parser) -> None:
    """What the scores of the rows have beside the weights."""
    parser.add_argument(
        "--offset",
        metavar="FILE",
        help="a file with the offset of each row, for a model that was trained with one; default: its column",
    )


def model_file(given: str) -> Path:
    """The model of a run's folder, or the file itself."""
    from bmrm.app.pipeline.run_folder import MODEL

    path = Path(given)
    return path / MODEL if path.is_dir() else path


def format_of(parsed: argparse.Namespace) -> Any:
    """The format, checked."""
    from bmrm.app.config.config import format_section
    from bmrm.app.config.options import columns
    from bmrm.data.reading import with_columns

    header = None if parsed.data_header is None else parsed.data_header == "true"
    ignore = None if parsed.ignore is None else columns(parsed.ignore, "--ignore")
    return with_columns(format_section(parsed.format), header, ignore)


def say_notes(notes: Iterable[str], origin: str) -> None:
    """Print what was decided in reading a file."""
    for note in notes:
        print(f"bmrm: {origin}: {note}", file=sys.stderr)


def say_converted(out: str, found: Converted) -> None:
    """Print what was written, and what a reader of it must be told."""
    print(f"{out}: {found.rows} rows, {found.features} features, {found.entries} entries")
    if found.format is not None:
        told = ", ".join(f"{key}: {json.dumps(value)}" for key, value in found.format.items())
        print(f"to read it: --format '{{{told}}}'")
