"""Named plug-ins, filled by the files that define them.

A registry belongs to one folder. `get("hinge")` imports `bmrm/losses/hinge.py` if there is such a file, else every
file of the folder, then the entry-point group of the same name; `module:attribute` reaches a class anywhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import math
import numbers
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar, cast

import numpy as np

from bmrm.problem import InputError, shown
from bmrm.vocabulary import PAGE, ParameterError, canonical, elsewhere, once, translated
from bmrm.vocabulary import nearest as nearest

P = TypeVar("P")
C = TypeVar("C", bound=type[Any])


ANY = "any number"


@dataclass(frozen=True)
class Range:
    """The values that a parameter may take; None leaves a side open. `renamed`: what choices of old are called now."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] | None = None
    several: tuple[Any, ...] | None = None
    """Those of the choices that may be combined: given as a list without repetition."""
    doc: str = ""
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)

    def __contains__(self, value: object) -> bool:
        if self.several is not None and isinstance(value, (list, tuple)):
            return all(one in self.several and value.count(one) == 1 for one in value)
        if self.choices is not None:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return True
        return (
            not (isinstance(value, float) and math.isnan(value))
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.choices is not None:
            lists = f", or a list of {', '.join(map(str, self.several))}" if self.several else ""
            return "one of " + ", ".join(map(str, self.choices)) + lists
        sides = ((">=", self.least), (">", self.above), ("<=", self.most), ("<", self.below))
        return " and ".join(f"{sign} {limit:g}" for sign, limit in sides if limit is not None) or ANY

    def instead_of(self, value: object) -> str:
        """What is expected instead of `value`; of a choice that has another name now, also that name."""
        now = self.renamed.get(value) if isinstance(value, str) else None
        return str(self) if now is None else f"{self}; {value!r} is now {now}"


def parameter(
    default: Any = dataclasses.MISSING,
    *,
    doc: str,
    example: Any = None,
    beside: Mapping[str, Any] | None = None,
    silent: bool = False,
    **limits: Any,
) -> Any:
    """A dataclass field with a range, a line of documentation and, for tests, another legal value.

    Parameters
    ----------
    default : of the field; left out where the option is required.
    doc : its meaning, in a line.
    example : another legal value; default None where the range tells one.
    beside : for an option that matters only when others are set: these, as the tests are to set them.
    silent : whether descriptions leave it out where it is None, as those of before it was there do.
    **limits : those of `Range`: `least`, `most`, `above`, `below`, `choices`, `several`, `renamed`.
    """
    metadata = {"range": Range(doc=doc, **limits), "example": example, "beside": dict(beside or {}), "silent": silent}
    return dataclasses.field(default=default, metadata=metadata)


def option_name(field_name: str) -> str:
    """The name of a field in YAML: `lambda` for `lam`, a Python keyword being no field name."""
    return "lambda" if field_name == "lam" else field_name


def field_name(option: str) -> str:
    """The inverse of `option_name`."""
    return "lam" if option == "lambda" else option


def given_fields(title: str, known: Mapping[str, dataclasses.Field[Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a dataclass from options as configs name them, or under another name (`bmrm.vocabulary`).

    Parameters
    ----------
    title : what messages call the class.
    known : its fields, as of `options_of`.
    options : what is given.

    Raises
    ------
    InputError
        For an option that the class does not have.
    """
    if not options:
        return {}
    found = translated(f"{title} has no option", options, known, "fit")
    return {known[option].name: value for option, value in found.items()}


@cache
def options_of(cls: type) -> Mapping[str, dataclasses.Field[Any]]:
    """The dataclass fields that a user may set, by the names of the options; looked up once for each class."""
    return {option_name(field.name): field for field in dataclasses.fields(cast("Any", cls)) if field.init}


def called_here(kind: str, name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: by the table of other programs, else the nearest one."""
    here = elsewhere(kind, name)
    return nearest(name, known) if here is None else f"; here it is {here} ({PAGE})"


_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
"""Names of the plain types of options in messages."""


def check_parameters(instance: Any) -> None:
    """Raise InputError for the first field of a dataclass of a wrong type or outside its range; for `__post_init__`.

    Numbers are stored in the type that the field has: those of NumPy as Python's, 1 as 1.0 where it is no whole number.
    """
    cls: Any = type(instance)
    for name, kinds, limits, known in _checks_of(cls):
        given = getattr(instance, name)
        if given is known:
            continue
        title = f"{cls.__name__}: {name}"
        try:
            value = checked_value(title, given, kinds, limits)
        except InputError as error:
            said = str(error).removeprefix(f"{title} ")
            raise ParameterError(cls.__name__, name, said) from None
        if value is not given:
            object.__setattr__(instance, name, value)


def checked_value(title: str, value: Any, kinds: tuple[type, ...], limits: Range | None = None) -> Any:
    """The value of a parameter in one of the types that it may have; True and "1" are no numbers.

    Parameters
    ----------
    title : what messages call it, "L2: lambda".
    value : as given.
    kinds : of int, float, bool, str and NoneType; () for a type that is not checked here.
    limits : its range; None for any value of these types.

    Raises
    ------
    InputError
        Saying what was expected.
    """
    limits = Range() if limits is None else limits
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None and (not kinds or types.NoneType in kinds):
        return None
    if isinstance(value, np.ndarray) and limits.choices is not None:
        value = value.tolist()
    found = _plain(value, kinds) if kinds else value
    if found is None or found not in limits:
        raise InputError(f"{title} is {shown(value)}, expected {_expected(kinds, limits, value)}")
    return found


def _plain(value: Any, kinds: tuple[type, ...]) -> Any:
    """The value as one of these types; None where it is of none of them."""
    if type(value) in kinds:
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            if float in kinds:
                return float(value)
            if int in kinds and math.trunc(value) == value:
                return math.trunc(value)
        except (ValueError, OverflowError):  # nan, infinity, integers beyond float64
            return None
    return value if isinstance(value, str) and str in kinds else None


def _expected(kinds: tuple[type, ...], limits: Range, value: object) -> str:
    words = [_WORDS[kind] for kind in kinds if kind in _WORDS]
    if limits.choices is not None or not words:
        return limits.instead_of(value)
    sides = str(limits)
    text = " or ".join(words) if sides == ANY else f"{' or '.join(words)} {sides}"
    return f"{text}, or None" if types.NoneType in kinds else text


@cache
def _checks_of(cls: type) -> Sequence[tuple[str, tuple[type, ...], Range, Any]]:
    """The fields with a range: name, types, range, and the default as it is stored, which needs no check."""
    kinds, found = _plain_types(cls), []
    for field in dataclasses.fields(cast("Any", cls)):
        limits = field.metadata.get("range")
        if limits is not None:
            types_of = kinds.get(field.name, ())
            found.append((field.name, types_of, limits, _as_stored(field.default, types_of, limits)))
    return found


def _as_stored(default: Any, kinds: tuple[type, ...], limits: Range) -> Any:
    try:
        return checked_value("", default, kinds, limits)
    except InputError:
        return dataclasses.MISSING


@cache
def _plain_types(cls: type) -> Mapping[str, tuple[type, ...]]:
    """The types of the fields that are numbers, truth values or text, or None; others are left out."""
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError):  # annotations of a user's class that mean nothing here
        return {}
    found = {}
    for name, hint in hints.items():
        kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        if all(kind in _WORDS or kind is types.NoneType for kind in kinds):
            found[name] = tuple(kinds)
    return found


@dataclass(frozen=True)
class Entry(Generic[P]):
    """A registered class and the facts its author states of it."""

    name: str
    cls: type[P]
    facts: Mapping[str, Any]

    @property
    def options(self) -> Mapping[str, dataclasses.Field[Any]]:
        """As of `options_of`."""
        cls: Any = self.cls
        return options_of(cls)

    @property
    def parameters(self) -> Collection[dataclasses.Field[Any]]:
        """The dataclass fields that a user may set."""
        return self.options.values()

    @property
    def headline(self) -> str:
        """The first line of the docstring."""
        return (self.cls.__doc__ or "").strip().split("\n")[0]


class Registry(Generic[P]):
    """The plug-ins of one folder, by name.

    Parameters
    ----------
    kind : what an entry is called in messages ("loss").
    package : the folder, also the entry-point group ("bmrm.losses").
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, Entry[P]] = {}
        self._complete = False

    def register(self, name: str, **facts: Any) -> Callable[[C], C]:
        """Class decorator: make the class known under `name`, and its name known to the class.

        Parameters
        ----------
        name : as configs and the command line have it.
        facts : class attributes to set.
        """

        def keep(cls: C) -> C:
            known = self._entries.get(name)
            if known is not None and known.cls.__qualname__ != cls.__qualname__:
                raise ValueError(f"{self.kind} {name!r} is registered twice: {known.cls} and {cls}")
            for fact, value in {"name": name, **facts}.items():
                setattr(cls, fact, value)
            self._entries[name] = Entry(name, cls, facts)
            return cls

        return keep

    def get(self, name: str) -> Entry[P]:
        """The entry `name`; raises InputError with the nearest known name."""
        if ":" in name and elsewhere(self.kind, name) is None:
            return self._outside(name)
        if name not in self._entries and name.isidentifier():
            self._import_file(name)
        if name not in self._entries:
            self._import_all()
        if name not in self._entries:
            raise InputError(f"unknown {self.kind} {shown(name)}{called_here(self.kind, name, self._entries)}")
        return self._entries[name]

    def all(self) -> tuple[Entry[P], ...]:
        """Every entry, sorted by name."""
        self._import_all()
        return tuple(self._entries[name] for name in sorted(self._entries))

    def options(self, name: str) -> tuple[str, ...]:
        """The names that the options of a plug-in have in YAML; InputError where there is none of that name."""
        return tuple(self.get(name).options)

    def make(self, name: str, options: Mapping[str, Any] | None = None) -> P:
        """An instance of `name` with the given options (YAML names); raises InputError for an unknown option."""
        entry = self.get(name)
        known = options_of(entry.cls)  # type: ignore[arg-type]
        fields = given_fields(f"{self.kind} {entry.name!r}", known, options or {})
        try:
            return entry.cls(**fields)
        except ParameterError as error:
            raise error.called({known[canonical(word, known) or word].name: word for word in options or {}}) from None
        except TypeError as error:
            raise InputError(f"{self.kind} {name!r}: {error}") from error

    def instance(self, given: Any, options: Mapping[str, Any] | None = None) -> P:
        """An instance from a name, `{"name": ..., option: value}` or an instance, with `options` besides.

        Raises
        ------
        InputError
            For anything else, and for options beside an instance.
        """
        if isinstance(given, str):
            return self.make(given, options)
        if isinstance(given, Mapping):
            if not isinstance(given.get("name"), str):
                raise InputError(f"{self.kind} is {dict(given)!r}, expected a name or {{'name': ...}}")
            own = {option: value for option, value in given.items() if option != "name"}
            return self.make(given["name"], once(self.kind, own, options or {}))
        if isinstance(given, type):
            raise InputError(f"{self.kind} is the class {given.__name__}, expected an instance: {given.__name__}()")
        if options:
            words = ", ".join(map(field_name, options))
            raise InputError(
                f"options {words} beside a {self.kind} that is made already; "
                f"expected {words} in {type(given).__name__}(...) or the {self.kind} by its name"
            )
        return cast("P", given)

    def entry_of(self, instance: Any) -> Entry[P] | None:
        """The entry of an instance's class; None where it is not registered."""
        found = self._entries.get(vars(type(instance)).get("name", ""))
        return found if found is not None and found.cls is type(instance) else None

    def describe(self, instance: P) -> dict[str, Any]:
        """`{name: ..., option: value}` from which `make` builds an equal instance."""
        cls: Any = type(instance)
        entry = self.entry_of(instance)
        said = {"name": f"{cls.__module__}:{cls.__qualname__}" if entry is None else entry.name}
        for option, field in options_of(cls).items():
            value = getattr(instance, field.name)
            if not (value is None and field.metadata.get("silent")):
                said[option] = value
        return said

    def _outside(self, name: str) -> Entry[P]:
        module_name, _, attribute = name.partition(":")
        if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
            raise InputError(f"{self.kind} {shown(name)}: expected module:Class, such as my_losses:PseudoHuber")
        try:
            with working_folder():
                cls = getattr(importlib.import_module(module_name), attribute)
        except (ImportError, AttributeError) as error:
            raise InputError(f"{self.kind} {shown(name)} cannot be imported: {error}") from error
        if not dataclasses.is_dataclass(cls) or not isinstance(cls, type):
            advice = f"; write @dataclass(frozen=True) before `class {attribute}`" if isinstance(cls, type) else ""
            raise InputError(f"{self.kind} {name!r} is not a dataclass{advice}")
        return Entry(name, cast("type[P]", cls), {})

    def _import_file(self, name: str) -> None:
        module = f"{self.package}.{name}"
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise

    def _import_all(self) -> None:
        if self._complete:
            return
        folder = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(folder.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        for point in importlib.metadata.entry_points(group=self.package):
            cls = point.load()
            if point.name not in self._entries:
                self.register(point.name)(cls)
        self._complete = True


@contextmanager
def working_folder() -> Iterator[None]:
    """Meanwhile modules are looked for in the working folder, too, after all other places.

    At other times they are not: files beside the data must not run because a library asks for a module of their name.
    """
    sys.path.append("")
    try:
        yield
    finally:  # that one, where the path had such an entry before, too
        if "" in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index("")]


SEARCHES: Registry[Any] = Registry("search", "bmrm.search")
"""Searches that a config can ask for: subclasses of `bmrm.search.Search`. It is here because configs are below them."""
