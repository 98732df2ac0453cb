"""Pairs of rows of different grades, sorted scores, cut points."""
