"""Load, solve, measure, write: what a run does, step by step."""
