"""Newton systems: their matrices, preconditioners and conjugate gradients."""
