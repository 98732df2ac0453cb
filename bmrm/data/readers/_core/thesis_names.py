"""Names of files as the thesis' program has them: `rows.txt:42.42+`, and `factors.ssv:activations.ssv:Act`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bmrm.problem import InputError

THRESHOLD = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[+-]")
"""A number, and on which side of it targets are positive."""


def parsed(names: Sequence[str], format: Any) -> tuple[list[str], Any]:
    """Files, and the format with what their names say of it; both as they are where no name says anything.

    Parameters
    ----------
    names : of files; one that is there is taken as it is.
    format : as of `bmrm.data.reading.scan`.

    Raises
    ------
    InputError
        Where names say different things, or something else than the format.
    """
    told = [_of_name(name) for name in names]
    found = [said for _, said in told if said is not None]
    if not found:
        return list(names), format
    if len(found) < len(told) or any(said != found[0] for said in found):
        raise InputError(f"{names[0]} and others: expected names that say the same of their targets")
    return [name for name, _ in told], _with(format, found[0], names[0])


def _of_name(name: str) -> tuple[str, dict[str, Any] | None]:
    if ":" not in name or _there(name):
        return name, None
    file, _, last = name.rpartition(":")
    if THRESHOLD.fullmatch(last):
        return file, {"name": "spardat", "threshold": last}
    inputs, _, outputs = file.partition(":")
    if outputs and last and _there(inputs) and _there(outputs):
        return inputs, {"name": "june", "outputs": outputs, "label": last}
    return name, None


def _there(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _with(format: Any, said: dict[str, Any], name: str) -> Any:
    plain = {"name": format} if isinstance(format, str) else format
    if not isinstance(plain, Mapping):
        raise InputError(f"{name}: expected the name of the file alone beside an instance of a format")
    options = {key: value for key, value in plain.items() if value is not None and (key, value) != ("name", "auto")}
    for key, value in said.items():
        if options.get(key, value) != value:
            raise InputError(f"{name}: its name says {key}: {value}, but data.format has {key}: {options[key]}")
    return {**said, **options}
