"""Sums over groups of rows whose labels depend on one another, for any structure: templates."""
