"""The reference of all commands as a page, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bmrm.cli._core.parser import Parser


def markdown() -> str:
    """A section for each command: what it does, its arguments in a table, examples."""
    from bmrm.cli import COMMANDS, parser

    lines: list[str] = []
    for name in COMMANDS:
        sub = next(action for action in parser([name])._actions if isinstance(action, argparse._SubParsersAction))
        lines += _command(name, sub.choices[name])
    return "\n".join(lines)


def _command(name: str, parser: Parser) -> Iterator[str]:
    yield from (f"## bmrm {name}", "", str(parser.description), "")
    examples = str(parser.epilog).removeprefix("examples:\n")
    yield from ("```console", *(f"$ {line.strip()}" for line in examples.splitlines()), "```", "")
    rows = [action for action in parser._actions if action.dest != "help" and action.help != argparse.SUPPRESS]
    if rows:
        yield from ("| argument | meaning |", "|---|---|")
        yield from (f"| {_spelling(action)} | {_meaning(action)} |" for action in rows)
        yield ""


def _spelling(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar}"
    flags = [f"`{flag}{value}`" for flag in action.option_strings] or [f"`{action.metavar}`"]
    return ", ".join(flags)


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "") % {"default": action.default}
    return " ".join(text.split()).replace("|", "\\|")
