"""The `bmrm` command. A command is one file here; it is imported when it is called, so that `bmrm --help` is quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from bmrm.cli._core.parser import Parser, nearest
from bmrm.interrupts import end_quietly

if TYPE_CHECKING:
    import argparse

    from bmrm.mpi.group import Group

COMMANDS = {
    "train": "train a model, from data and options or as a config file says",
    "path": "train for many lambdas, from the largest down, each model with its certificate",
    "cv": "cross-validate a training, or choose among candidates by it",
    "init": "look at data and write a config that trains on them",
    "predict": "scores, labels, probabilities or ranks of the rows of a file or of standard input",
    "evaluate": "measure a model on a data file with targets",
    "convert": "write data in another format: a store, npz, svmlight, csv, Parquet, spardat, june, Harwell-Boeing",
    "project": "write rows on few directions: random ones, or leading singular vectors",
    "complete": "rank the features that rows lack by how likely they belong there (link completion)",
    "export": "write a model in a format of another program: liblinear, vw, json, onnx, c",
    "show": "what a model is: certificate, largest weights, how it was trained",
    "compare": "runs side by side: settings that differ, objectives with bounds, measures, seconds",
    "report": "write an HTML page about finished runs, several compared",
    "info": "what is in a data file; without one, what is installed here",
    "losses": "the losses, or all about one of them",
    "regularizers": "the regularizers, or all about one of them",
    "solvers": "the solvers, or all about one of them",
    "measures": "the measures, by the tasks that they fit",
    "check": "try a loss or regularizer of yours against the laws that solvers rest on",
    "warm": "compile what training needs beforehand, in parallel processes",
    "schema": "print the JSON schema of config files",
    "completion": "print what makes bash, zsh or fish complete commands and options",
}
MODULES = dict.fromkeys(("losses", "regularizers", "solvers"), "plug_ins")
"""File of a command, if its name differs."""
COLLECTIVE = "train", "path", "cv", "complete", "convert"
"""Commands that all ranks work for."""
DESCRIPTION = "Regularized risk minimization with a certified optimality gap."
EXAMPLES = """
bmrm train a9a.svm --loss hinge --lambda 1e-4 --test a9a.t --output runs/a9a
mpirun -n 4 bmrm train config.yaml --tolerance 1e-6
bmrm predict runs/a9a/model.npz new.svm --labels --out labels.txt
bmrm show runs/a9a
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status.

    Parameters
    ----------
    arguments : the words behind `bmrm`; None for those that the process was started with.

    Raises
    ------
    SystemExit
        With status 2 for a command line that is wrong, 0 after `--help` and `--version`.
    """
    if arguments is None:
        end_quietly()
    words = list(sys.argv[1:] if arguments is None else arguments)
    from bmrm.mpi.launch import launched

    parsed = None if launched() else parse(words)  # under mpirun rank 0 alone parses, and says what is wrong
    from bmrm.run import guarded

    return guarded(lambda group: _run(group, words, parsed, started=arguments is None))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command, `parsed.command` its name; ends the process where there is none."""
    if not words or words[0] not in COMMANDS:
        _without_command(words)
    parsed: argparse.Namespace = parser(words).parse_args(words)
    return parsed


def parser(words: Sequence[str] | None) -> Parser:
    """The parser for these words, in which only the command that they name has its arguments; None for all commands."""
    top = Parser(prog="bmrm", description=DESCRIPTION)
    top.examples(EXAMPLES)
    top.add_argument("--version", action="store_true", help="print the version of this package and end")
    commands = top.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, text in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        sub.set_defaults(command=name, parser=sub)
        sub.words = words
        if words is None or words[:1] == [name]:
            _module(name).add_arguments(sub)
    return top


def _module(command: str) -> Any:
    return importlib.import_module(f"bmrm.cli.{MODULES.get(command, command)}")


def _without_command(words: Sequence[str]) -> NoReturn:
    """Help, version, or what is wrong; ends the process."""
    top = parser([])
    if not words:
        top.print_help()
        top.exit()
    if not words[0].startswith("-"):
        top.error(f"unknown command {words[0]!r}{nearest(words[0], list(COMMANDS))}")
    parsed = top.parse_args(words)
    if parsed.version:
        from importlib.metadata import version

        print(f"bmrm {version('bmrm')}")
        top.exit()
    top.error("expected a command")


def _run(group: Group, words: Sequence[str], parsed: argparse.Namespace | None, started: bool) -> int:
    """Collective: the command; all but `COLLECTIVE` are the work of rank 0."""
    leave = None
    if group.rank == 0 and parsed is None:
        try:
            parsed = parse(words)
        except SystemExit as end:  # argparse has said why
            leave = int(end.code or 0)
    leave = group.broadcast(leave)
    if leave is not None:
        return int(leave)
    module = _module(words[0])
    if words[0] in COLLECTIVE:
        status: int = module.run(group, parsed, started=started)
        return status
    status = module.run(parsed) if parsed is not None else 0
    return status
