"""Solvers of the master problem of the bundle method, and the planes that they work on."""
