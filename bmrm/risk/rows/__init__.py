"""Some of the rows of a risk: chosen, drawn or parted."""
