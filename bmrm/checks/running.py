"""Laws run in order; of each the first violation is kept: laws begin where a violation is easiest to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import numpy as np

from bmrm.checks.report import BrokenLawError, Report, Violation, raised
from bmrm.problem import BmrmError

T = TypeVar("T")


class NotOfferedError(Exception):
    """The law is about something that this object does not offer; the text says what."""


class Laws(Generic[T]):
    """Laws by name, in the order in which they are tried; each yields violations of what it is given."""

    def __init__(self) -> None:
        self.all: dict[str, Callable[[T], Iterable[Violation]]] = {}

    def law(self, name: str) -> Callable[[Callable[[T], Iterable[Violation]]], Callable[[T], Iterable[Violation]]]:
        """Decorator: the function is the law `name`."""

        def keep(function: Callable[[T], Iterable[Violation]]) -> Callable[[T], Iterable[Violation]]:
            self.all[name] = function
            return function

        return keep

    def followed_by(self, more: Laws[T]) -> Laws[T]:
        """These laws, then `more`."""
        both: Laws[T] = Laws()
        both.all = self.all | more.all
        return both

    def violation(self, name: str, of: T) -> Violation | None:
        """The first violation of one law, None where it holds; raises NotOfferedError."""
        with np.errstate(all="ignore"):
            try:
                return next(iter(self.all[name](of)), None)
            except BrokenLawError as broken:
                return broken.violation
            except (BmrmError, NotOfferedError):
                raise
            except Exception as error:
                return Violation(name, "", np.inf, raised(error))

    def report(self, subject: str, of: T) -> Report:
        """Try all laws; one that fails before the numbers can be compared ends the check."""
        held, violations, skipped = [], [], dict[str, str]()
        for name in self.all:
            try:
                found = self.violation(name, of)
            except NotOfferedError as why:
                skipped[name] = str(why)
                continue
            if found is None:
                held.append(name)
                continue
            violations.append(found)
            if found.law in FIRST:
                later = list(self.all)[list(self.all).index(name) + 1 :]
                skipped |= dict.fromkeys(later, f"after {found.law}")
                break
        return Report(subject, tuple(held), tuple(violations), skipped)


FIRST: Mapping[str, str] = dict.fromkeys(("runs", "shapes", "finite"), "")
"""Laws without which the others mean nothing."""
