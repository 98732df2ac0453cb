"""Who says that a rank was killed: a small process beside rank 0, since the launcher kills all others at once.

It hears of a death because the socket closes that each rank on the machine of rank 0 has to it. Started as a program of
its own, which imports nothing of ours.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

BYE, ALL, CHECKPOINT = b"bye", b"all", b"from "
"""Messages of a rank: it ends regularly; all ranks end for a reason already printed; the checkpoint from which a later
run continues."""


class Sentinel:
    """This rank's word to the sentinel of the job. Made by all ranks together."""

    def __init__(self, group: Group) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = ""
        if group.rank == 0:
            name = f"\0bmrm-{os.getpid()}-{os.urandom(8).hex()}"  # abstract: no file is left behind
            _start(name, group.size)
            self._introduce(name, 0)
        name = group.broadcast(name)
        if group.rank != 0:
            self._introduce(name, group.rank)

    def _introduce(self, name: str, rank: int) -> None:
        try:
            self._socket.connect(name)
        except OSError:  # on another machine, or there is none
            return
        self._tell(f"rank {rank} (process {os.getpid()} on {socket.gethostname()})".encode())

    def _tell(self, message: bytes) -> None:
        try:
            self._socket.send(message)
        except OSError:
            return

    def resumes_from(self, path: str) -> None:
        """The checkpoint that this job would leave."""
        self._tell(CHECKPOINT + os.fsencode(path))

    def end(self, well: bool) -> None:
        """This rank ends; or, not `well`, all do, and it has been said why."""
        self._tell(BYE if well else ALL)


def _start(name: str, ranks: int) -> None:
    """Have a process that listens there; without one nothing is lost but its words."""
    import subprocess

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(name)
            listener.listen(ranks)
            subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(listener.fileno()), str(ranks)],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # what ends the ranks does not end it
            )
        except OSError:
            return


def watch(listener: socket.socket, ranks: int) -> str:
    """What is to be said once a rank has gone without a word; nothing where all have ended."""
    names: dict[socket.socket, str] = {}
    checkpoint = ""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():  # in the order in which they came: the launcher kills the others later
                rank = key.fileobj
                assert isinstance(rank, socket.socket)
                if rank is listener:
                    new, _ = listener.accept()
                    names[new] = new.recv(1000).decode()
                    selector.register(new, selectors.EVENT_READ)
                    continue
                message = rank.recv(10000)
                if message.startswith(CHECKPOINT):
                    checkpoint = os.fsdecode(message[len(CHECKPOINT) :])
                elif message == BYE:
                    selector.unregister(rank)
                    del names[rank]
                    if not names:
                        return ""
                else:
                    return "" if message == ALL else _words(names[rank], len(names) < ranks, checkpoint)


def _words(name: str, others: bool, checkpoint: str) -> str:
    which = f"{name}, or one on another machine," if others else name
    said = f"bmrm: {which} was killed or has crashed (the system kills processes where memory runs out); "
    if os.path.exists(checkpoint):
        return f"{said}the same command with --resume goes on from {checkpoint}"
    return f"{said}no checkpoint was there yet to --resume from (output.checkpoint_every)"


if __name__ == "__main__":
    words = watch(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    if words:
        print(words, file=sys.stderr, flush=True)
