"""What a class must be to be a plug-in: a dataclass whose options are its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, get_origin

import numpy as np

from bmrm.checks.cases import name_of
from bmrm.checks.report import Violation


def declared(plug_in: Any) -> Iterator[Violation]:
    """The class is a dataclass, and its own options are fields of it."""
    yield from declared_class(type(plug_in))


def declared_class(cls: type[Any]) -> Iterator[Violation]:
    """As `declared`."""
    title = cls.__name__
    advice = f"write @dataclass(frozen=True) before `class {title}`"
    loose = [name for each in cls.__mro__ for name, one in vars(each).items() if isinstance(one, dataclasses.Field)]
    if not dataclasses.is_dataclass(cls):
        text = f"{title} is not a dataclass, so that its options are unknown; {advice}"
        yield Violation("dataclass", "", np.inf, text)
    elif loose or _left_out(cls):
        names = ", ".join(dict.fromkeys([*loose, *_left_out(cls)]))
        text = f"{title} has options that are no fields of a dataclass ({names}); {advice}"
        yield Violation("dataclass", "", np.inf, text)


def _left_out(cls: type[Any]) -> list[str]:
    """Options annotated in the class itself, which has not been made a dataclass as its base was."""
    if "__dataclass_params__" in vars(cls):
        return []
    known = {field.name for field in dataclasses.fields(cls)}
    return [name for name, kind in vars(cls).get("__annotations__", {}).items() if name not in known and _option(kind)]


def _option(kind: Any) -> bool:
    return not (kind is ClassVar or get_origin(kind) is ClassVar or "ClassVar" in str(kind))


def rebuilt(plug_in: Any) -> Iterator[Violation]:
    """The same options make an equal object, which can stand in sets and as a key."""
    if next(declared(plug_in), None) is not None:
        return
    title = name_of(plug_in)
    try:
        hash(plug_in)
    except TypeError:
        yield Violation("dataclass", "", np.inf, f"{title} has no hash; write @dataclass(frozen=True)")
    options = {field.name: getattr(plug_in, field.name) for field in dataclasses.fields(plug_in) if field.init}
    again = type(plug_in)(**options)
    if again != plug_in:
        changed = [name for name in options if not _same(getattr(again, name), options[name])]
        text = f"made anew with its own options it is another: {', '.join(changed) or 'it compares as unequal'}"
        yield Violation("dataclass", "", np.inf, f"{title}: {text}")


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))
