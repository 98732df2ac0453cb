"""What solvers share: the bookkeeping of a run, line searches, linear systems, bounds."""
