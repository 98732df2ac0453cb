"""`bmrm report`: finished runs as an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from bmrm.cli._core.parser import Parser


def add_arguments(parser: Parser) -> None:
    """Folders of runs, and the file."""
    parser.examples("bmrm report runs/a9a\nbmrm report runs/a9a runs/b9b --out both.html")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a run")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="the file to write; default: %(default)s")


def run(parsed: argparse.Namespace) -> int:
    """Write it, print its name."""
    from bmrm.app.html import write_report

    print(write_report(parsed.runs, parsed.out))
    return 0
