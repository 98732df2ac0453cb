"""Finished runs as one HTML file that needs no network and no script: `bmrm report`."""

from bmrm.app.html.page import write_report

__all__ = ["write_report"]
