"""Risks: a dataset and a loss as one convex function of the weights."""
