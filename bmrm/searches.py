"""The searches that a config can ask for, by name; they are defined in bmrm/search, above training."""

from __future__ import annotations

from typing import Any

from bmrm.registry import Registry

SEARCHES: Registry[Any] = Registry("search", "bmrm.search")
"""Classes that are a `bmrm.search.Search`."""
