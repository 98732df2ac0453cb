"""Jitted functions on whole arrays. Each has a NumPy twin in its test."""
