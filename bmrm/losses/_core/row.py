"""The formula of a loss as compiled functions of one row; whole arrays and sums over rows are generated from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from bmrm.kernels.jit import fast_jit, jit, specialised
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rows import sweeps
from bmrm.losses._core.prepared import along_by_blocks

Scalar = Any
"""A float64, in functions of one row: mypy would take the first argument for `self`."""
Pair = Any
"""Two of them."""
Function = Callable[..., Any]
ARRAYS: dict[str, tuple[Function, int]] = {
    "value_slope": (sweeps.values_and_slopes, 2),
    "curvature": (sweeps.curvatures, 1),
    "prox": (sweeps.proximal_points, 2),
}
"""Array template and number of results for each function of one row."""
OF_EXPONENTIAL: dict[str, Function] = {
    "value_slope": sweeps.exponential_value_slope,
    "curvature": sweeps.exponential_curvature,
}
"""Array templates for functions that take one exponential as an argument after f and y."""


class Row:
    """A function of one row, compiled when it is first needed; as a method of a loss it takes arrays.

    The function takes no `self`: what it needs of the parameters comes last, in the order of the fields.
    """

    exponent: Row | None = None
    """Of the exponential that the function takes after f and y; None where it takes none."""

    def __init__(self, function: Function, compiler: Callable[[Function], Function]) -> None:
        self._function = function
        self._compiler = compiler

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loss: Any, owner: type) -> Any:
        return self if loss is None else partial(self._of_arrays, loss)

    @cached_property
    def written(self) -> Function:
        """The function, compiled as it is written."""
        return self._compiler(self._function)

    @cached_property
    def compiled(self) -> Function:
        """For one row, without the exponential."""
        return self.written if self.exponent is None else self.within(OF_EXPONENTIAL[self._name])

    def within(self, template: Function, compiler: Callable[[Function], Function] | None = None) -> Function:
        """The template with the function as it is written, and the exponent if there is one."""
        functions = {} if self.exponent is None else {"exponent": self.exponent.compiled}
        return specialised(template, compiler or self._compiler, **{self._name: self.written}, **functions)

    @cached_property
    def _filling(self) -> Function:
        if self.exponent is not None and self._name == "curvature":
            return self.within(sweeps.exponential_curvatures)
        return specialised(ARRAYS[self._name][0], self._compiler, **{self._name: self.compiled})

    def _of_arrays(self, loss: Any, *arrays: Any) -> Any:
        shapes = [np.shape(array) for array in arrays]
        shape = shapes[0]
        if shapes.count(shape) < len(shapes):
            shape = np.broadcast_shapes(*shapes)
            arrays = tuple([a if of == shape else np.broadcast_to(a, shape) for a, of in zip(arrays, shapes)])
        filled = tuple([np.empty(shape) for _ in range(ARRAYS[self._name][1])])
        flat = [plain(array).reshape(-1) for array in (*arrays, *filled)]  # of those to be filled, views
        self._filling(*flat, *loss.scalars)
        return filled if len(filled) > 1 else filled[0]


class _Generated:
    """A class attribute that is made from a function of one row when it is first asked for."""

    def __init__(self, make: Callable[[Row], Function], row: Row) -> None:
        self._make = make
        self._row = row

    def __get__(self, loss: Any, owner: type) -> Function:
        return self._function

    @cached_property
    def _function(self) -> Function:
        return self._make(self._row)


def _sweep(row: Row) -> Function:
    return row.within(sweeps.sweep if row.exponent is None else sweeps.exponential_sweep, fast_jit)


def _sweep_along(row: Row) -> Function:
    return along_by_blocks(_sweep(row)) if row.exponent is not None else row.within(sweeps.sweep_along, fast_jit)


def _value(row: Row) -> Function:
    return specialised(sweeps.value_of, row._compiler, value_slope=row.compiled)


SUMS = {"kernel": _sweep, "generated_kernel": _sweep, "along_kernel": _sweep_along, "value_row": _value}
"""Templates generated from `value_slope`, by the attribute of the loss."""


def row(function: Function) -> Any:
    """A function of one row of a loss, in the class of the loss; sums over it may be reassociated (`fast_jit`).

    Parameters
    ----------
    function : a function of numbers, with the arguments that those of `bmrm.losses.hinge` have.
    """
    return Row(function, fast_jit)


def strict_row(function: Function) -> Any:
    """As `row`, rounded as it stands (`jit`).

    Parameters
    ----------
    function : a function of numbers, with the arguments that those of `bmrm.losses.hinge` have.
    """
    return Row(function, jit)


def generate(loss: type) -> None:
    """Give a class of losses what follows from its functions of one row, and is not written in the class itself.

    Where the class has formulas for arrays instead, nothing is left of what its base generated from others.
    """
    own = vars(loss)
    formula, prox = own.get("value_slope"), own.get("prox")
    for name in OF_EXPONENTIAL.keys() & own.keys():
        if isinstance(own[name], Row):
            own[name].exponent = own.get("exponent")
    for name, make in SUMS.items():
        if name not in own and (formula is not None or {"value", "slope"} & own.keys()):
            setattr(loss, name, None if formula is None else _Generated(make, formula))
    if "prox_row" not in own and prox is not None:
        made = _Generated(lambda row: row.compiled, prox) if isinstance(prox, Row) else None
        setattr(loss, "prox_row", made)  # noqa: B010 (`type` has no such attribute)
