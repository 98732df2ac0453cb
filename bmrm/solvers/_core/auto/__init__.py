"""What the solver `auto` is made of: rules, solvers in turns, and their runs joined to one."""
