"""`bmrm predict`: scores, labels, probabilities or ranks of rows, a line for each; measures where rows have labels."""

from __future__ import annotations

import argparse
import itertools
import sys

from bmrm.cli._core.arguments import add_data, add_loss, add_model, add_offset, format_of, loaded, say_notes
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm predict runs/a9a new.svm --labels --out labels.txt
bmrm predict runs/a9a new.svm.gz --probabilities --out p.txt.gz
zcat logs.gz | bmrm predict runs/a9a - --scores | sort -g | tail
bmrm predict runs/a9a new.svm --maximize f_beta@2
bmrm predict runs/letor/model.npz queries.svm --ranks
"""
KINDS = {
    "scores": "the scores, several with blanks between (default)",
    "labels": "predicted labels, or numbers of a regression; sets of labels with commas between",
    "probabilities": "of each label, in the order of the model's labels (of some losses, and of calibrated models)",
    "ranks": "the place of each row in its query by falling score, from 1; without queries among all rows",
}


def add_arguments(parser: Parser) -> None:
    """Model, data, what to write and where."""
    parser.examples(EXAMPLES)
    add_model(parser)
    add_loss(parser)
    add_data(parser, ", with labels or without, or - for standard input")
    add_offset(parser)
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
    parser.add_argument(
        "--maximize",
        metavar="MEASURE",
        help="f1, f_beta or such as f_beta@2: labels of two classes whose expected F-beta on all rows together is the "
        "largest, by the model's probabilities; time grows with the square of the rows",
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the first line of the output names its columns; default: only where there are several; of the "
        "rows that are read --data.header says it",
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="nothing on standard error but errors",
    )


def run(parsed: Namespace) -> int:
    """Write a line for each row."""
    from bmrm.app.measure import names_of_measures
    from bmrm.app.predict import Labelled, column_names, lines_of
    from bmrm.data.files import compressed_like_its_name
    from bmrm.metrics.expected_f import beta_of
    from bmrm.problem import InputError

    if parsed.maximize is not None:
        beta_of(parsed.maximize)  # before rows are read
        if parsed.what not in ("scores", "labels"):
            raise InputError(f"--maximize gives labels, expected it without --{parsed.what}")
        parsed.what = "labels"
    model = loaded(parsed)
    labelled = None if parsed.quiet else Labelled(model)
    lines = lines_of(
        model,
        parsed.data,
        format_of(parsed),
        parsed.what,
        labelled=labelled,
        offset=parsed.offset,
        maximize=parsed.maximize,
        tell=lambda note: None if parsed.quiet else say_notes([note], parsed.data),
    )
    columns = column_names(model, parsed.what)
    if parsed.header or (parsed.header is None and len(columns) > 1):
        lines = itertools.chain([" ".join(columns)], lines)
    if parsed.out == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
    else:
        with compressed_like_its_name(parsed.out) as stream:
            for line in lines:
                stream.write(f"{line}\n".encode())
    rows = labelled.scored() if labelled is not None else None
    if rows is not None:
        from bmrm.metrics import evaluate

        for name, value in evaluate(names_of_measures(model.loss, model.calibration), rows).items():
            print(f"{name} {'-' if value is None else format(value, '.6g')}", file=sys.stderr)
    return 0
