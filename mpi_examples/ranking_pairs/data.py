"""The data of `ranking_ndcg`."""

from mpi_examples.ranking_ndcg.data import write

__all__ = ["write"]
