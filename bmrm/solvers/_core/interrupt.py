"""Ctrl-C, and SIGTERM in a run, as a flag."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


def terminated(number: int, frame: FrameType | None) -> None:
    """What a program that ends in good order does at SIGTERM: as Python at Ctrl-C, which may well be ignored."""
    raise KeyboardInterrupt


PLAIN: dict[signal.Signals, Callable[..., None]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: terminated,
}
"""Signal handlers that are replaced during a run and restored after it."""


class Interrupt:
    """Ctrl-C as a flag while a solver runs; a second Ctrl-C is a KeyboardInterrupt as ever. A context manager.

    Only in the main thread, and only where Ctrl-C has Python's own meaning: a host's handler is left alone. SIGTERM
    means the same where its handler is `terminated`, whether Ctrl-C is ignored or not. Inside another one it has that
    one's flag.

    Parameters
    ----------
    around : it is not of a solver, but around solvers. When one of them has ended there is a point to be kept: then
        Ctrl-C only sets the flag, unless another one begins.
    """

    def __init__(self, around: bool = False) -> None:
        self._raised = False
        self._ours: list[signal.Signals] = []
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
        handlers = {number: signal.getsignal(number) for number in PLAIN}
        owners = (getattr(handler, "__self__", None) for handler in handlers.values())
        self._host = next((owner for owner in owners if isinstance(owner, Interrupt)), None)
        if self._host is not None:
            self._host._running += 1
            return self
        for number, handler in handlers.items():
            if handler is PLAIN[number]:
                signal.signal(number, self._handle)
                self._ours.append(number)
        return self

    def __exit__(self, *error: object) -> None:
        if self._host is not None:
            self._host._ended = True
            self._host._running -= 1
            self._raised, self._host = self._host.raised, None
        while self._ours:
            number = self._ours.pop()
            signal.signal(number, PLAIN[number])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._raised and not (self._ended and not self._running):
            raise KeyboardInterrupt
        self._raised = True
