"""`bmrm export`: a model in a format of another program."""

from __future__ import annotations

from bmrm.cli._core.arguments import add_loss, add_model, loaded
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm export runs/a9a --to liblinear --out a9a.model
bmrm export runs/iris --to onnx --out iris.onnx
bmrm export runs/iris --to '{name: c, prefix: iris}' --out iris.c
"""


def add_arguments(parser: Parser) -> None:
    """The model, the format, the file."""
    parser.examples(EXAMPLES)
    add_model(parser)
    add_loss(parser)
    from bmrm.app.export import EXPORTS

    entries = EXPORTS.all()
    said = "; ".join(f"{entry.name}: {entry.headline.rstrip('.')}" for entry in entries)
    action = parser.add_argument(
        "--to", required=True, metavar="FORMAT", help=f"the format, or {{name: ..., option: value}}. {said}"
    )
    action.names = tuple(entry.name for entry in entries)  # type: ignore[attr-defined]  # for completion
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="the file, which appears when it is complete, or not at all"
    )


def run(parsed: Namespace) -> int:
    """Write the file."""
    from bmrm.app.config.marks import yaml_value
    from bmrm.problem import InputError, shown

    format = yaml_value(parsed.to, "--to")
    if not isinstance(format, (str, dict)):
        raise InputError(f"--to is {shown(format)}, expected a format or {{name: ..., option: value}}")
    loaded(parsed).export(parsed.out, format)
    return 0
