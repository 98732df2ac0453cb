"""Dual ascent, a row or a sentence at a time."""
