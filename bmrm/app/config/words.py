"""What a value may be, in words: "a number > 0, or null"."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from bmrm.app.config.fields import is_table
from bmrm.registry import Range

_KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table {option: value}",
}
_SIGNS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
_BARE = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""JSON Schema keywords for pydantic's names of limits, where a field has a check of ours too."""
_WIDEST = 2.0**62
"""Limits beyond this are those of the type and are not shown."""


def type_in_words(kind: Any, limits: Range | None = None) -> str:
    """What a value of this type and range may be.

    Parameters
    ----------
    kind : a type as pydantic takes it.
    limits : of the numbers, or the choices.
    """
    parts = parts_of(kind)
    nullable = any(part.get("type") == "null" for part in parts)
    if limits is not None and limits.choices is not None:
        text = str(limits)
    elif is_table(kind):
        text = "rows of numbers or names, or a file of them"
    else:
        text = " or ".join(dict.fromkeys(_words(parts, limits))) or "a label: a number or text"
    return f"{text}, or null" if nullable else text


def parts_of(kind: Any) -> list[Mapping[str, Any]]:
    """The JSON schemas of the types that a value may have."""
    return list(_parts(standard(TypeAdapter(kind).json_schema())))


def standard(schema: Any) -> Any:
    """A JSON schema of pydantic's with the names that the standard has for limits."""
    if isinstance(schema, list):
        return [standard(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limited = schema.get("type") in ("number", "integer")
    return {_BARE.get(key, key) if limited else key: standard(part) for key, part in schema.items()}


def default_in_words(value: Any) -> str:
    """A default as YAML has it; "required" where there is none."""
    if value is dataclasses.MISSING:
        return "required"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(parts: Iterable[Mapping[str, Any]], limits: Range | None) -> Iterator[str]:
    for part in parts:
        if "enum" in part:
            yield f"one of {', '.join(map(str, part['enum']))}"
        elif "const" in part:
            yield str(part["const"])
        elif part.get("type") in _KINDS:
            yield _KINDS[part["type"]] + _limits(part, limits)


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _parts(one)
    else:
        yield schema


def _limits(part: Mapping[str, Any], limits: Range | None) -> str:
    if part["type"] not in ("number", "integer"):
        return ""
    sides = [(sign, part[key]) for key, sign in _SIGNS.items() if key in part]
    if limits is not None:
        sides += [(">=", limits.least), (">", limits.above), ("<=", limits.most), ("<", limits.below)]
    shown = [f"{sign} {limit:.12g}" for sign, limit in sides if limit is not None and abs(limit) < _WIDEST]
    return f" {' and '.join(shown)}" if shown else ""
