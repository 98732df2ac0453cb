"""scikit-learn's measures, imported when the first of them is called: that takes longer than a small problem."""

from __future__ import annotations

import importlib
from typing import Any


class _Lazily:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)


sk = _Lazily("sklearn.metrics")
