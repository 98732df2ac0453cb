"""Data made by a formula and a seed."""
