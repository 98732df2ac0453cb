"""Plug-ins as checks take them: who is meant, what a class must be, options and targets that are made up for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, get_origin

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.laws import Violation
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.problem import InputError, facts_of, lacking
from bmrm.registry import Registry, called_here, given_fields, option_name, options_of
from bmrm.regularizers import REGULARIZERS
from bmrm.vocabulary import elsewhere

CLASSES = 3
ROWS = 36
Maker = Callable[[np.random.Generator, int, Any], Any]


def name_of(plug_in: Any) -> str:
    """For messages: the name that it is registered by, else that of its class."""
    cls = plug_in if isinstance(plug_in, type) else type(plug_in)
    return facts_of(cls).name or str(cls.__name__)


def instance_of(registry: Registry[Any], given: Any, options: Mapping[str, Any] | None = None) -> Any:
    """An instance; parameters without a default are at their example.

    Raises InputError for an unknown name or option, and for options beside an instance.
    """
    if isinstance(given, str):
        given = registry.get(given).cls
    if not isinstance(given, type):
        if options:
            raise InputError(f"options {', '.join(options)} beside a {registry.kind} that is made already")
        return given
    if next(declared_class(given), None) is not None:
        return given()
    return example_of(given, given_fields(f"{registry.kind} {name_of(given)!r}", options_of(given), options or {}))


def kind_of(name: str) -> Literal["loss", "regularizer"]:
    """What a name is the name of; InputError where it is neither."""
    if ":" in name:
        cls = LOSSES.get(name).cls
        if next(lacking(cls, ("minimize",)), None) is None:
            raise InputError(
                f"{name} is a solver, expected a loss or a regularizer; what a solver returns is checked in each run "
                "of bmrm.fit and bmrm.minimize"
            )
        return "regularizer" if [*lacking(cls, ("prepare", "subgradient"))] == ["prepare"] else "loss"
    known = {entry.name for entry in LOSSES.all()}
    if name in known:
        return "loss"
    regularizers = {entry.name for entry in REGULARIZERS.all()}
    if name in regularizers:
        return "regularizer"
    kind = "loss" if elsewhere("loss", name) else "regularizer"
    raise InputError(f"no loss or regularizer {name!r}{called_here(kind, name, known | regularizers)}")


def title_of(one: Any) -> str:
    """The object with its options, else its name."""
    text = str(one)
    return name_of(one) if " object at 0x" in text else text


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


def targets_for(loss: Any, rows: int = ROWS, seed: int = 3) -> Any:
    """Targets of the loss's task, inside its domain; InputError for a task of the loss's own."""
    task = facts_of(loss).task
    if task not in MAKERS:
        known = ", ".join(sorted(MAKERS))
        raise InputError(f"no targets can be made up for the task {task!r} (known: {known}); give some as y=")
    return MAKERS[task](np.random.default_rng(seed), rows, loss)


def groups_for(loss: Any, rows: int = ROWS) -> NDArray[np.int64] | None:
    """Groups of 1 to 7 rows that follow one another, for losses that look at one group at a time; else None."""
    if loss.decomposes != "groups":
        return None
    names = np.repeat(np.arange(96, 0, -1), np.tile([5, 1, 7, 3, 6, 2], 16))
    return names[:rows].astype(np.int64)


def example_of(cls: type[Any], options: dict[str, Any] | None = None) -> Any:
    """An instance with the options given, and with their examples where a parameter without a default has none.

    Raises InputError for a parameter that has neither a default nor an example.
    """
    values = dict(options or {})
    for field in dataclasses.fields(cls):
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.init and missing and field.name not in values:
            if field.metadata.get("example") is None:
                name = option_name(field.name)
                raise InputError(f"{cls.__name__}: {name} has no default; give it, or an example to its parameter()")
            values[field.name] = field.metadata["example"]
    return cls(**values)


def _multiclass(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES


def _regression(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Partly whole numbers, so that scores can meet them."""
    y = rng.integers(-2, 3, size=rows).astype(float)
    y[::3] += rng.normal(size=y[::3].shape)
    lowest = {"": None, ">= 0": 0.0, "> 0": 0.5}[facts_of(loss).targets_from]
    return y if lowest is None else np.abs(y) + lowest


def _ranking(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Four grades; the first five rows, which are a group, have all the same."""
    y = rng.integers(0, 4, size=rows).astype(float)
    y[:5] = 1.0
    return y


def _multilabel(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Labels 1, 2, 5 and 7; one row without any, one with all."""
    names = np.array([1.0, 2.0, 5.0, 7.0])
    sets = [names[rng.random(4) < 0.4] for _ in range(rows)]
    sets[0], sets[1] = names[:0], names
    return LabelSets.from_rows(sets)


def _ontology(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    names = np.array(loss.tree.nodes)[loss.candidate]
    return names[rng.permutation(rows) % len(names)]


MAKERS: Mapping[str, Maker] = {
    "binary": lambda rng, rows, loss: np.where(rng.random(rows) < 0.4, 1.0, -1.0),
    "multiclass": _multiclass,
    "sequence": _multiclass,
    "regression": _regression,
    "multivariate": lambda rng, rows, loss: np.stack([_regression(rng, rows, loss) for _ in range(CLASSES)], axis=1),
    "novelty": lambda rng, rows, loss: np.array(["not", "looked", "at"])[np.arange(rows) % 3],
    "ranking": _ranking,
    "ordinal": lambda rng, rows, loss: np.arange(rows)[rng.permutation(rows)] % 4 + 1.0,
    "multilabel": _multilabel,
    "ontology": _ontology,
}
"""Generators of targets, by the task of a loss."""
