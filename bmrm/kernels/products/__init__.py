"""Products of rows and columns with vectors, their Gram matrices, sums of vectors."""
