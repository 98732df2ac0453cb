"""Ctrl-C as a flag."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupt:
    """Ctrl-C as a flag while a solver runs; a second Ctrl-C is a KeyboardInterrupt as ever. A context manager.

    Only in the main thread, and only where Ctrl-C has Python's own meaning: a host's handler is left alone. Inside
    another one it has that one's flag.

    Parameters
    ----------
    around : it is not of a solver, but around solvers. When one of them has ended there is a point to be kept: then
        Ctrl-C only sets the flag, unless another one begins.
    """

    def __init__(self, around: bool = False) -> None:
        self._raised = False
        self._ours = False
        self._host: Interrupt | None = None
        self._running = 0 if around else 1
        self._ended = False

    @property
    def raised(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._raised if self._host is None else self._host.raised

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is not threading.main_thread():
            return self
        handler = signal.getsignal(signal.SIGINT)
        host = getattr(handler, "__self__", None)
        if isinstance(host, Interrupt):
            self._host = host
            host._running += 1
        elif handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._ours = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._host is not None:
            self._host._ended = True
            self._host._running -= 1
            self._raised, self._host = self._host.raised, None
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._ours = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._raised and not (self._ended and not self._running):
            raise KeyboardInterrupt
        self._raised = True
