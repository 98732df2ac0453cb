"""Quadratic models of a risk on some of its columns."""
