"""`bmrm completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError, MissingLibraryError

SHELLS = ("bash", "zsh", "fish")
PATHS = ("DATA", "DATA|CONFIG", "MODEL", "FILE", "RUN", "DIRECTORY", "LOSS|CONFIG")
"""Metavariables of arguments that are paths."""
EXAMPLES = """
bmrm completion bash >> ~/.bash_completion
bmrm completion zsh > ~/.zsh/_bmrm          # a folder of $fpath
bmrm completion fish > ~/.config/fish/completions/bmrm.fish
"""


def add_arguments(parser: Parser) -> None:
    """The shell."""
    parser.examples(EXAMPLES)
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def run(parsed: Namespace) -> int:
    """Print the script."""
    from bmrm.registry import nearest

    if parsed.shell not in SHELLS:
        raise InputError(f"unknown shell {parsed.shell!r}{nearest(parsed.shell, SHELLS)}; expected bash, zsh or fish")
    try:
        import shtab
    except ImportError as error:
        raise MissingLibraryError("completion needs", "shtab", "completion") from error
    print(shtab.complete(completed_parser(shtab.FILE), parsed.shell))
    return 0


def completed_parser(files: Any) -> argparse.ArgumentParser:
    """The parser of all commands, in which arguments say what may stand there: `files`, or the names that there are."""
    from bmrm.cli import parser

    top = parser(None)
    known = _names()
    for command, action in _arguments(top):
        if action.metavar in PATHS:
            action.complete = files  # type: ignore[attr-defined]
        elif action.choices is None:
            names = known.get(command if action.dest == "name" else action.dest)
            action.choices = getattr(action, "names", None) or names
    return top


def _arguments(top: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from ((name, inner) for inner in sub._actions)


def _names() -> dict[str, list[str]]:
    """The names that an argument may be, by its destination or by the command."""
    from bmrm.app.config.options import OPTIONS
    from bmrm.cli.train import FIELD
    from bmrm.data.readers._core.formats import formats
    from bmrm.metrics import MEASURES, TASKS

    found = {FIELD + section[0]: [e.name for e in plug_in.registry.all()] for section, plug_in in OPTIONS.items()}
    listings = {"losses": "loss", "regularizers": "regularizer", "solvers": "solver"}
    found |= {command: found[FIELD + section] for command, section in listings.items()}
    found[f"{FIELD}data.format"] = [entry.name for entry in formats.all()]
    found |= {"task": [*TASKS, *MEASURES], "format": [entry.name for entry in formats.all()], "shell": list(SHELLS)}
    return found
