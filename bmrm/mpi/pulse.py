"""Whether the other ranks still live: a thread of every rank says so by datagrams, whatever its main thread computes.

Rank 0 and each other rank watch one another. MPI has no part in it: where a collective call hangs, it cannot tell for
whom, and two threads that speak to MPI would make all of it slower.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

BEAT, RANKS = 0.25, 50
"""Seconds between two heartbeats, and the number of ranks above which they are proportionally rarer."""
TOKEN = 16
"""Bytes that distinguish the datagrams of this job."""


@dataclass
class Peer:
    """The state of another rank.

    Attributes
    ----------
    name : for messages.
    near : whether it runs on the same machine, where a datagram gets through if any does.
    silence : seconds since its last sign of life, not counting those in which this process itself stood still.
    """

    name: str
    near: bool
    heard: bool = False
    silence: float = 0.0


@dataclass
class Pulse:
    """The signs of life of this rank, and those of the ranks that it watches. Begins with `start`, on every rank.

    Parameters
    ----------
    rank, size : of this process.
    """

    rank: int
    size: int
    peers: dict[int, Peer] = field(default_factory=dict)
    """By rank: all others on rank 0, rank 0 on the others."""

    def __post_init__(self) -> None:
        self._token = secrets.token_bytes(TOKEN) if self.rank == 0 else b""
        self._targets: list[tuple[str, int]] = []
        self._host: tuple[str, int] | None = None
        self._beat = BEAT * max(1.0, self.size / RANKS)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", 0))
        self._socket.setblocking(False)

    def introduction(self) -> dict[str, Any]:
        """What the other ranks must know of this one, JSON-able."""
        port = self._socket.getsockname()[1]
        return {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "port": port,
            "addresses": _addresses(),
            "token": self._token.hex(),
        }

    def start(self, introductions: dict[int, dict[str, Any]]) -> None:
        """Begin, knowing the ranks to be watched by their introductions."""
        here = socket.gethostname()
        for rank, said in introductions.items():
            name = f"rank {rank} (process {said['process']} on {said['host']})"
            self.peers[rank] = Peer(name, said["host"] == here)
        if self.rank != 0:
            first = introductions[0]
            self._token = bytes.fromhex(first["token"])
            addresses = ["127.0.0.1", *first["addresses"]] if first["host"] == here else first["addresses"]
            self._targets = [(address, first["port"]) for address in addresses]
            self._host = (first["host"], first["port"])
        threading.Thread(target=self._run, name="bmrm-pulse", daemon=True).start()

    def silent(self, timeout: float) -> list[str]:
        """Who has given no sign of life for so many seconds, of those that can be heard at all."""
        return [peer.name for peer in list(self.peers.values()) if peer.silence >= timeout]

    def _run(self) -> None:
        before = time.monotonic()
        while True:
            if self.rank != 0:
                self._beat_once()
            end = time.monotonic() + self._beat
            while (left := end - time.monotonic()) > 0.0:
                if select.select([self._socket], [], [], left)[0]:
                    self._receive()
            now = time.monotonic()
            # Whoever was stopped himself has heard nobody meanwhile.
            passed, before = min(now - before, 2.0 * self._beat), now
            for peer in self.peers.values():
                if peer.heard or peer.near:
                    peer.silence += passed
            self._receive()

    def _beat_once(self) -> None:
        message = self._token + self.rank.to_bytes(4, "big")
        for target in list(self._targets):
            self._send(message, target)
        if self._host is not None and not self.peers[0].heard and not self.peers[0].near:
            self._send(message, self._host)  # its name may be known here

    def _send(self, message: bytes, target: tuple[str, int]) -> None:
        try:
            self._socket.sendto(message, target)
        except OSError:  # no way there, or none just now
            return

    def _receive(self) -> None:
        """All that has arrived; rank 0 answers."""
        while True:
            try:
                message, sender = self._socket.recvfrom(64)
            except BlockingIOError:
                return
            except OSError:  # a port that nobody listens at any more
                continue
            rank = int.from_bytes(message[TOKEN:], "big")
            if message[:TOKEN] != self._token or rank not in self.peers:
                continue
            self.peers[rank].heard, self.peers[rank].silence = True, 0.0
            if self.rank == 0:
                self._send(self._token + (0).to_bytes(4, "big"), sender)
            else:
                self._targets = [sender]


def _addresses() -> list[str]:
    """Where other machines may reach this one: the address that packets to the outside would come from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation; nothing is sent
            return [str(probe.getsockname()[0])]
        except OSError:
            return []
