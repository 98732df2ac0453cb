"""A browser without a window, for what only a browser can tell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
wants_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]


def browse(address: str, profile: Path, *options: str) -> str:
    """Open a page; returns its document after `--dump-dom`. The console has to stay empty."""
    assert BROWSER is not None
    command = [BROWSER, *QUIET, f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout
