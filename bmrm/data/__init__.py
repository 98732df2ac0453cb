"""Datasets: readers, writers, generators."""
