"""What the solver `auto` is made of: rules, and solvers that take turns in one run."""
