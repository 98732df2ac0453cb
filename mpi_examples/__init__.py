"""Ready configs, a folder each; `python -m mpi_examples.tour` runs some of them."""
