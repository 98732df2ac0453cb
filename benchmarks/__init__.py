"""Measurements: `python -m benchmarks` runs all and writes docs/measurements.md; `python -m benchmarks passes` one."""
