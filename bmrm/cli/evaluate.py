"""`bmrm evaluate`: measures of a model on rows with targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bmrm.app.tables import print_json, print_lines, print_pairs
from bmrm.cli._core.arguments import (
    add_data,
    add_loss,
    add_model,
    add_offset,
    count,
    format_of,
    loaded,
    say_notes,
    share,
)
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm evaluate runs/a9a a9a.t
bmrm evaluate runs/a9a/model.npz a9a.t --metrics auc accuracy --folds 10
"""
CHUNKS = ("precision", "recall", "f1", "true", "found")
"""Columns for the chunks of a type."""


def add_arguments(parser: Parser) -> None:
    """Model, data, measures."""
    parser.examples(EXAMPLES)
    add_model(parser)
    add_loss(parser)
    add_data(parser)
    add_offset(parser)
    parser.add_argument(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="measures that fit the loss, such as auc ndcg@5, see `bmrm measures`; default: those of the loss",
    )
    parser.add_argument(
        "--folds",
        type=count(2),
        metavar="COUNT",
        help="measure so many parts of the rows each by itself: mean and interval (a whole number >= 2)",
    )
    parser.add_argument(
        "--confidence",
        type=share,
        default=0.95,
        metavar="SHARE",
        help="of the interval (a number > 0 and < 1; default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print the measures."""
    from bmrm.app.measure import check_metrics
    from bmrm.data.encoding import unknown_in_words
    from bmrm.data.files import about
    from bmrm.data.reading import read_offset
    from bmrm.problem import facts_of

    model = loaded(parsed)
    names = _names(parsed.metrics)
    check_metrics(names, model.loss)
    data = model.read(parsed.data, format_of(parsed), labelled=facts_of(model.loss).needs_targets, quiet=True)
    if data.layout is not None:
        unknown = unknown_in_words(data.layout.unknown)
        say_notes((*data.layout.notes, *filter(None, [unknown])), parsed.data)
    if parsed.offset is not None:
        with about(parsed.offset):
            data = data.with_offset(read_offset(parsed.offset))
    title = f"{parsed.model} on {parsed.data}"
    if parsed.folds is None:
        with _naming(parsed.data):
            values = model.evaluate(data, metrics=names)
        chunks = model.evaluate_chunks(data) if facts_of(model.loss).task == "sequence" else {}
        if parsed.json:
            by_type = {kind: {name: getattr(one, name) for name in CHUNKS} for kind, one in chunks.items()}
            print_json({**values, "chunks": by_type} if chunks else values)
            return 0
        print_pairs(title, {name: "-" if value is None else f"{value:.6g}" for name, value in values.items()})
        if chunks:
            print()
            rows = [[kind, *(f"{getattr(one, name):.6g}" for name in CHUNKS)] for kind, one in chunks.items()]
            print_lines(("chunks", *CHUNKS), rows)
        return 0
    with _naming(parsed.data):
        found = model.evaluate_folds(data, metrics=names, folds=parsed.folds, confidence=parsed.confidence)
    if parsed.json:
        print_json({name: {"mean": one.mean, "low": one.low, "high": one.high} for name, one in found.items()})
    else:
        print_pairs(title, {name: str(interval) for name, interval in found.items()})
    return 0


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Errors that speak of "data" name the file."""
    from bmrm.problem import InputError

    try:
        yield
    except InputError as error:
        if not str(error).startswith("data: "):
            raise
        raise InputError(f"{source}: {str(error).removeprefix('data: ')}") from error


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Names with blanks or commas between them."""
    return None if given is None else [name for part in given for name in part.split(",") if name]
