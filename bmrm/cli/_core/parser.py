"""The parser of the command line: one line for what is wrong, examples under the help, no abbreviations."""

from __future__ import annotations

import argparse
import difflib
from argparse import Namespace as Namespace
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from bmrm.words import shortened

WRONG = 2
"""Exit status of a wrong command line."""


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that ends with status 2 and one line.

    Attributes
    ----------
    words : the command line to parse, for options that depend on others; None where all options are wanted.
    answer : what to write instead of an option of other programs; "" for others.
    several : the destination of arguments that may stand before, between and behind options; None where there is none.
    """

    answer: Callable[[str], str] = staticmethod(lambda word: "")
    words: Sequence[str] | None = None
    several: str | None = None

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def examples(self, text: str) -> None:
        """Show these lines under the help."""
        self.epilog = "examples:\n" + "\n".join(f"  {line}" for line in text.strip().splitlines())

    def error(self, message: str) -> NoReturn:
        """End with one line."""
        self.exit(WRONG, f"{self.prog}: {shortened(message)} (`{self.prog} --help` says more)\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of `ArgumentParser`; an unknown option is answered by the nearest that there is."""
        found, others = self.parse_known_args(args, namespace)
        at = getattr(found, "parser", self)
        if at.several is not None:  # argparse takes those that stand together
            getattr(found, at.several).extend(word for word in others if not word.startswith("-"))
            others = [word for word in others if word.startswith("-")]
        if others:
            at.error(f"unknown argument {others[0]!r}{at.nearest_option(others[0])}")
        return found

    def nearest_option(self, word: str) -> str:
        """' (did you mean X?)' of the options, or the empty string."""
        name = word.partition("=")[0]
        if instead := self.answer(name):
            return instead
        listed = [action for action in self._actions if action.help != argparse.SUPPRESS]
        flags = [flag[2:] for action in listed for flag in action.option_strings if flag.startswith("--")]
        close = nearest_of(name.lstrip("-"), flags)  # dashes would make all of them alike
        return f" (did you mean '--{close}'?)" if close else ""


def nearest(word: str, known: Sequence[str]) -> str:
    """' (did you mean X?)' for the closest of `known`, or the empty string; imports nothing of ours."""
    close = nearest_of(word, known)
    return f" (did you mean {close!r}?)" if close else ""


def nearest_of(word: str, known: Sequence[str]) -> str:
    """The closest of `known`, or the empty string where none is like the word."""
    return next(iter(difflib.get_close_matches(word[:200], known, n=1, cutoff=0.6)), "")
