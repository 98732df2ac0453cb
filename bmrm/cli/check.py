"""`bmrm check`: the conformance laws for a loss or a regularizer of one's own."""

from __future__ import annotations

from bmrm.cli._core.parser import Namespace, Parser
from bmrm.run import FAILED, OK


def add_arguments(parser: Parser) -> None:
    """What to check, and the seed."""
    parser.examples("bmrm check my_losses:PseudoHuber\nbmrm check '{name: huber, delta: 2}'")
    parser.add_argument("plug_in", metavar="NAME", help="module:Class, a name, or {name: ..., option: value}")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="SEED", help="of the points that are tried (a whole number; default 0)"
    )


def run(parsed: Namespace) -> int:
    """Print the report."""
    from bmrm.app.config.config import named_plug_in
    from bmrm.app.model_file import from_plain
    from bmrm.checks.losses import check_loss
    from bmrm.checks.regularizers import check_regularizer
    from bmrm.losses import LOSSES
    from bmrm.regularizers import REGULARIZERS

    kind, section = named_plug_in(parsed.plug_in)
    if kind == "loss":
        report = check_loss(from_plain(LOSSES, section), seed=parsed.seed)
    else:
        report = check_regularizer(from_plain(REGULARIZERS, section), seed=parsed.seed)
    print(report)
    return OK if report.ok else FAILED
