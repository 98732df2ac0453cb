"""Sums and maxima over all labelings of chains."""
