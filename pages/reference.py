"""The reference: signature, description, parameters, errors and methods of an object, as Markdown.

griffe reads the docstrings; types come from the annotations, and what a docstring says behind a name is its meaning.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

import bmrm
from bmrm import extend
from bmrm.app.config.words import default_in_words
from bmrm.registry import Entry, Range, option_name
from pages.text import code, plain, prose

WIDTH = 88
"""Characters of a signature in one line."""
PUBLIC = {id(getattr(extend, name)): f"bmrm.extend.{name}" for name in extend.__all__}
PUBLIC |= {id(getattr(bmrm, name)): f"bmrm.{name}" for name in bmrm.__all__ if name != "__version__"}
"""Names in `bmrm` and `bmrm.extend`, which are shown instead of where the object is defined."""


def described(path: str) -> str:
    """The entry of `module.object`; ImportError or AttributeError where there is none."""
    module, _, name = path.rpartition(".")
    return _entry(getattr(importlib.import_module(module), name), path)


def described_plug_in(entry: Entry[Any]) -> str:
    """A plug-in under its registered name, with its options instead of the methods that our solvers call."""
    path = f"{entry.cls.__module__}.{entry.cls.__name__}"
    parts = [f"### {entry.name}: `{_name(entry.cls, path)}` {{ #{path} }}", *_sections(entry.cls, parameters=False)]
    said = _said(entry.cls)
    options = [_option(field, said.get(field.name)) for field in entry.parameters]
    return "\n\n".join([*parts, *(["**Options**", "\n".join(options)] if options else [])]) + "\n"


def _said(one: Any) -> dict[str, str]:
    """What the docstring says of each parameter."""
    found = {}
    for part in _parsed(one):
        if part.kind is griffe.DocstringSectionKind.parameters:
            for item in part.value:
                text = _line(" ".join(filter(None, (str(item.annotation or ""), item.description))))
                found |= dict.fromkeys((name.strip() for name in item.name.split(",")), text)
    return found


def _option(field: dataclasses.Field[Any], said: str | None) -> str:
    """Name, default, meaning (of the docstring, else of the field) and range."""
    required = field.default is dataclasses.MISSING
    default = "required" if required else f"default {code(default_in_words(field.default))}"
    limits: Range | None = field.metadata.get("range")
    meaning = said or ("" if limits is None else prose(limits.doc))
    bounds = "" if limits is None or str(limits) == "any number" else f" ({plain(str(limits))})"
    return f"- {code(option_name(field.name))}, {default}: {meaning}{bounds}"


def _name(one: Any, path: str) -> str:
    return PUBLIC.get(id(one), path)


def _entry(one: Any, path: str) -> str:
    name = _name(one, path)
    return "\n\n".join([f"### `{name}` {{ #{path} }}", *_body(one, name.rpartition(".")[2])]) + "\n"


def _body(one: Any, name: str) -> Iterator[str]:
    if not (inspect.isclass(one) and (issubclass(one, (enum.Enum, BaseException)) or _is_protocol(one))):
        yield f"```python\n{signature(one, name)}\n```"
    yield from _sections(one)
    if not inspect.isclass(one):
        return
    if issubclass(one, enum.Enum):
        yield "\n".join(f"- {code(member.name)}: {plain(str(member.value))}" for member in one)
    for method_name, method in _methods(one):
        yield f"#### `{method_name}` {{ #{one.__module__}.{one.__name__}.{method_name} }}"
        if callable(method):
            yield f"```python\n{signature(method, method_name)}\n```"
        yield from _sections(method)
    if others := _from_scikit_learn(one):
        yield f"From scikit-learn: {', '.join(map(code, others))}."


def _is_protocol(one: type) -> bool:
    return bool(getattr(one, "_is_protocol", False))


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties with a docstring, in the order of the source, then those of our base classes."""
    seen = set()
    for base in cls.__mro__:
        if base is not cls and not base.__module__.startswith("bmrm.estimators"):
            continue
        for name, member in vars(base).items():
            found = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            found = getattr(found, "fn", found)  # of scikit-learn's `available_if`
            own = inspect.isfunction(found) or isinstance(found, property)
            if own and not name.startswith("_") and found.__doc__ and name not in seen:
                seen.add(name)
                yield name, found


def _from_scikit_learn(cls: type) -> list[str]:
    """The names of public methods that scikit-learn gives."""
    homes = [base for base in cls.__mro__ if base.__module__.startswith("sklearn.")]
    names = {name for base in homes for name in vars(base) if not name.startswith("_")}
    requests = {name for name in dir(cls) if re.fullmatch(r"set_\w+_request", name)}
    theirs = {name for name in names if callable(getattr(cls, name, None))} | requests
    return sorted(theirs - dict(_methods(cls)).keys())


def signature(one: Any, name: str) -> str:
    """As in the source, without `self`; one parameter a line where it is long."""
    found = inspect.signature(one)
    parameters = [p for p in found.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")]
    parameters = [p.replace(annotation=p.empty, default=_shown(p.default)) for p in parameters]
    returns = (
        ""
        if inspect.isclass(one) or found.return_annotation is found.empty
        else f" -> {_type(found.return_annotation)}"
    )
    shown = str(inspect.Signature(parameters))
    if len(name + shown + returns) <= WIDTH:
        return f"{name}{shown}{returns}"
    parts = [part for part in _split(shown[1:-1]) if part]
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returns}"])


class _Text(str):
    """A default as it is written."""

    __repr__ = str.__str__


def _shown(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    return _Text("..." if "object at 0x" in text or "<factory>" in text else text)


def _split(parameters: str) -> list[str]:
    """At the commas outside brackets and quotes."""
    return [part.strip() for part in re.split(r",\s*(?![^()\[\]{}]*[)\]}])", parameters)]


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def _parsed(one: Any) -> list[Any]:
    """The sections of a docstring; none of one that a dataclass has made."""
    text = inspect.getdoc(one) or ""
    if dataclasses.is_dataclass(one) and text.startswith(f"{one.__name__}("):  # type: ignore[union-attr]
        return []
    return griffe.parse_numpy(griffe.Docstring(text), warnings=False, warn_missing_types=False)


def _sections(one: Any, parameters: bool = True) -> Iterator[str]:
    """The docstring, section by section, with its parameters or without."""
    types = _annotations(one)
    for part in _parsed(one):
        if part.kind is griffe.DocstringSectionKind.parameters and not parameters:
            continue
        match part.kind:
            case griffe.DocstringSectionKind.text:
                yield prose(str(part.value))
            case griffe.DocstringSectionKind.parameters | griffe.DocstringSectionKind.attributes:
                yield f"**{'Parameters' if part.kind is griffe.DocstringSectionKind.parameters else 'Attributes'}**"
                yield "\n".join(line for item in part.value for line in _items(item, types))
            case (
                griffe.DocstringSectionKind.returns
                | griffe.DocstringSectionKind.raises
                | griffe.DocstringSectionKind.yields
            ):
                yield f"**{part.kind.value.capitalize()}**"
                yield "\n".join(map(_kind, part.value))
            case griffe.DocstringSectionKind.admonition:
                yield f"**{part.title}**"
                yield prose(str(part.value.description))


def _kind(item: Any) -> str:
    """The line of a type; `Error : when` in one line of the docstring is a type and its meaning."""
    kind, _, more = str(item.annotation or "").partition(" : ")
    return f"- {code(kind)}: {_line(' '.join(filter(None, (more, item.description))))}"


def _items(item: Any, types: dict[str, str]) -> Iterator[str]:
    """A line for each of the names that share a description."""
    said = _line(" ".join(filter(None, (str(item.annotation or ""), item.description))))
    names = [name.strip() for name in item.name.split(",")]
    kinds = list(dict.fromkeys(types[name] for name in names if name in types))
    kind = f" ({', '.join(map(code, kinds))})" if kinds else ""
    yield f"- {', '.join(map(code, names))}{kind}: {said}"


def _annotations(one: Any) -> dict[str, str]:
    """Types of parameters or fields by name, where they say something."""
    if inspect.isclass(one):
        found = {k: v for cls in reversed(one.__mro__) for k, v in getattr(cls, "__annotations__", {}).items()}
        found = {**found, **getattr(one.__init__, "__annotations__", {})}  # type: ignore[misc]
    else:
        found = dict(getattr(one, "__annotations__", {}))
    shown = {name: _type(kind) for name, kind in found.items()}
    return {name: kind for name, kind in shown.items() if kind != "Any" and "ClassVar" not in kind}


def _line(text: str) -> str:
    return prose(" ".join(text.split()))
