"""`bmrm warm`: compile kernels beforehand."""

from __future__ import annotations

import sys

from bmrm.cli._core.arguments import count
from bmrm.cli._core.parser import Namespace, Parser


def add_arguments(parser: Parser) -> None:
    """Losses or configs, how much of them, and the number of processes."""
    parser.examples("bmrm warm hinge softmax\nbmrm warm config.yaml\nbmrm warm hinge --all-solvers")
    parser.add_argument(
        "losses", nargs="*", metavar="LOSS", help="names, module:Class, or config files; default: all losses"
    )
    parser.add_argument(
        "--all-solvers",
        action="store_true",
        help="of a loss every solver, regularizer and kind of data, alone and over ranks: minutes; default: what its"
        " first fit compiles with default settings",
    )
    parser.add_argument(
        "--processes", type=count(1), metavar="COUNT", help="a whole number >= 1; default: one for each core"
    )


def run(parsed: Namespace) -> int:
    """Compile, and say how much."""
    from bmrm.app.warm import warm

    def say(text: str) -> None:
        print(f"compiling kernels (once, kept for later runs): {text}", file=sys.stderr, flush=True)

    done = warm(parsed.losses, parsed.processes, say, parsed.all_solvers)
    what = done.losses[0] if len(done.losses) == 1 else f"{len(done.losses)} losses or configs"
    who = "1 process" if done.processes == 1 else f"{done.processes} processes"
    print(f"{done.kernels} kernels compiled for {what} in {done.seconds:.1f} s by {who}")
    return 0
