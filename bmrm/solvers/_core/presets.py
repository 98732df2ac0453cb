"""Options that are null take the value of a preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from bmrm.solvers._core.monitor import IterativeSolver

S = TypeVar("S", bound=IterativeSolver)


def chosen(solver: IterativeSolver, preset: Mapping[str, Any]) -> dict[str, Any]:
    """The options that `preset` names: the user's value, else that of the preset."""
    given = {name: getattr(solver, name) for name in preset}
    return {name: preset[name] if value is None else value for name, value in given.items()}


def resolved(solver: S, values: Mapping[str, Any], limit: str) -> S:
    """The solver with these values of options, of which the one named `limit` is among the limits of iterations."""
    most = solver.max_iterations if values[limit] is None else min(values[limit], solver.max_iterations)
    return dataclasses.replace(solver, **values, max_iterations=most)
