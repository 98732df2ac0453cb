"""Regularized risk minimization with a certified optimality gap."""
