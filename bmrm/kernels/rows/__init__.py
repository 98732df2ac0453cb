"""Functions of one row after another: envelopes, exponentials."""
