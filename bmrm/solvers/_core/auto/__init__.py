"""What the solver `auto` is made of: measured decisions, and a portfolio of solvers in stages."""
