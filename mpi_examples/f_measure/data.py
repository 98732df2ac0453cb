"""The data of `roc_area`."""

from mpi_examples.roc_area.data import write

__all__ = ["write"]
