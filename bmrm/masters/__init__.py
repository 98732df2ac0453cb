"""Engines for the subproblem of the bundle method, and the planes that they work on."""
