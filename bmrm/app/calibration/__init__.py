"""Probabilities from scores: what is asked for, how curves are fitted, and the curves that a model keeps."""
