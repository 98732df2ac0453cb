"""Numerical tools on floats and arrays: a bracket and its rules, roots, line searches, conjugate gradients."""
