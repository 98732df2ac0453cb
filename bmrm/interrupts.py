"""Ctrl-C while a command is being started, and when its work is done: it ends at once, without a traceback."""

import os
import signal

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


def end_at_once(number: int, frame: object) -> None:
    """Leave: nothing has been begun, or all is done."""
    os._exit(INTERRUPTED)


def end_quietly() -> None:
    """Until the work begins; not where Ctrl-C is ignored, or a host's handler is there."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
