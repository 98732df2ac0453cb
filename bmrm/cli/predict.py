"""`bmrm predict`: scores, labels, probabilities or ranks of rows, a line for each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bmrm.cli._core.arguments import add_data, add_loss, add_model, format_of, loaded

if TYPE_CHECKING:
    import argparse

    from bmrm.cli._core.parser import Parser

EXAMPLES = """
bmrm predict runs/a9a new.svm --labels --out labels.txt
bmrm predict runs/a9a new.svm.gz --probabilities --out p.txt.gz
zcat logs.gz | bmrm predict runs/a9a - --scores | sort -g | tail
bmrm predict runs/letor/model.npz queries.svm --ranks
"""
KINDS = {
    "scores": "the scores, several with blanks between (default)",
    "labels": "predicted labels, or numbers of a regression; sets of labels with commas between",
    "probabilities": "of each label, in the order of the model's labels (logistic, softmax, chain_crf)",
    "ranks": "the place of each row in its query by falling score, from 1; without queries among all rows",
}


def add_arguments(parser: Parser) -> None:
    """Model, data, what to write and where."""
    parser.examples(EXAMPLES)
    add_model(parser)
    add_loss(parser)
    add_data(parser, ", with labels or without, or - for standard input")
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="-",
        help="where a line for each row goes, compressed if it ends in .gz, .bz2 or .xz; the file appears when it is "
        "complete, or not at all; default: -, standard output",
    )
    kinds = parser.add_mutually_exclusive_group()
    for kind, text in KINDS.items():
        kinds.add_argument(f"--{kind}", dest="what", action="store_const", const=kind, default="scores", help=text)


def run(parsed: argparse.Namespace) -> int:
    """Write a line for each row."""
    from bmrm.app.predict import lines_of
    from bmrm.data.files import compressed_like_its_name

    lines = lines_of(loaded(parsed), parsed.data, format_of(parsed), parsed.what)
    if parsed.out == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
        return 0
    with compressed_like_its_name(parsed.out) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
    return 0
