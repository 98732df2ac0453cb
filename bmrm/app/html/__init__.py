"""Finished runs as one HTML file: `bmrm report`."""
