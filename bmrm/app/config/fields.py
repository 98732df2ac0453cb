"""Checks of one value against one type, and messages about what was expected."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bmrm.registry import nearest


def option_types(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields, resolved from their annotations."""
    return typing.get_type_hints(cls)


def is_table(kind: Any) -> bool:
    """Whether the type is a matrix, for which a file may be given."""
    return "tuple[tuple" in str(kind)


def checked(kind: Any, value: Any) -> Any:
    """`value` as `kind`: numbers may be quoted, but true is not a number; a path may be given for a matrix.

    Raises ValueError with what was expected.
    """
    if is_table(kind) and isinstance(value, str):
        value = _table(value, str if "str" in str(kind) else float)
    adapter: TypeAdapter[Any] = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
    try:
        found = adapter.validate_python(value, strict=isinstance(value, bool))
        if type(found) is int and not -(2**63) <= found < 2**63:
            raise ValueError("a whole number of at most 64 bits")
        return found
    except ValidationError as error:
        reasons = dict.fromkeys(expected(detail) for detail in error.errors())
        raise ValueError(" or ".join(reasons)) from error


def _table(path: str, entry: Callable[[str], Any]) -> list[list[Any]]:
    """The entries of a text file, a row per line, between commas or blanks."""
    wanted = "lines of names, or a file of them" if entry is str else "numbers, or a file of numbers"
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        return [[entry(token) for token in line.replace(",", " ").split()] for line in lines if line.strip()]
    except OSError as error:
        raise ValueError(f"{wanted} ({error.strerror})") from error
    except ValueError as error:
        raise ValueError(f"{wanted} ({error})") from error


_WORDS = {
    "float_parsing": "a number",
    "float_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "finite_number": "a finite number",
    "none_required": "null",
    "model_type": "a section of fields",
    "dict_type": "a section of fields",
}


def expected(detail: Mapping[str, Any]) -> str:
    """What pydantic expected, in the words of our messages."""
    context = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return f"{context['expected']}{nearest(str(detail['input']), _choices(context['expected']))}"
    if detail["type"] == "value_error":
        return str(context["error"])
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    limit = next((f"{signs[key]} {context[key]}" for key in signs if key in context), None)
    words = _WORDS.get(detail["type"])
    return words or (f"a number {limit}" if limit else str(detail["msg"]).removeprefix("Input should be "))


def _choices(expected: str) -> list[str]:
    return [part.strip(" '") for part in expected.replace(" or ", ",").split(",")]
