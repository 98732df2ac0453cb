"""Readers, one file per format; each part reads a share of the rows."""
