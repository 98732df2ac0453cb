"""Data generated from a formula and a seed."""
