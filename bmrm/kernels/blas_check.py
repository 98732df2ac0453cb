"""A shorter first call: numba would load scipy.linalg, only to see that it is there.

That is half of the first call of a compiled function in a process, 0.15 s, and no kernel here uses BLAS. Functions of
numba that need BLAS (`np.dot` in somebody else's kernel) ask for it again themselves.
"""

from __future__ import annotations

from typing import Any


def leave_out_blas() -> None:
    """Spare numba the question while it prepares for its first function; a numba that is built otherwise asks it."""
    from numba.core.cpu import CPUContext

    prepare = getattr(CPUContext, "load_additional_registries", None)
    if prepare is None:
        return

    def prepare_without(self: Any) -> None:
        from numba.np import linalg

        CPUContext.load_additional_registries = prepare
        asks = getattr(linalg, "ensure_blas", None)
        linalg.ensure_blas = lambda: None
        try:
            prepare(self)
        finally:
            linalg.ensure_blas = asks

    CPUContext.load_additional_registries = prepare_without
