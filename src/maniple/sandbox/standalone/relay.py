"""Relay between a worker in a container and the single stream that connects it to the host.

A program that uses only the standard library. Its standard input and output carry
frames: a channel (one byte: 0 control, 1 calls, 2 standard output, 3 standard error of the worker), a length
(four bytes, big-endian) and so many bytes. The first frame is on channel 0 and holds, as JSON, the texts of
`worker.py` and `interpreter.py`. The end of the input is the end of everything.
"""

import fcntl
import json
import os
import select
import shutil
import socket
import struct
import sys
import tempfile
import termios

_PIECE_BYTES = 65_536
_CONTROL, _CALLS, _OUT, _ERR = range(4)


def _read(length: int) -> bytes:
    content = b""
    while len(content) < length:
        piece = os.read(0, length - len(content))
        if not piece:
            os._exit(0)
        content += piece
    return content


def _receive() -> tuple[int, bytes]:
    channel, length = struct.unpack(">BI", _read(5))
    return channel, _read(length)


def _send(channel: int, content: bytes) -> None:
    rest = memoryview(struct.pack(">BI", channel, len(content)) + content)
    while rest:
        rest = rest[os.write(1, rest) :]


def _forward(channel: int, descriptor: int) -> bool:
    """Send what can be read there now, and not what is added meanwhile; False at its end."""
    waiting = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]
    if not waiting:
        return False
    while waiting > 0:
        content = os.read(descriptor, min(waiting, _PIECE_BYTES))
        waiting -= len(content)
        _send(channel, content)
    return True


def _start(control: int, calls: int, outputs: tuple[int, int]) -> None:
    folder = tempfile.mkdtemp(dir="/tmp")  # never in the workspace
    for name, text in json.loads(_receive()[1]).items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
            file.write(text)
    worker, interpreter = (f"{folder}/{name}" for name in ("worker.py", "interpreter.py"))
    bash = shutil.which("bash") or "/bin/bash"
    argv = [sys.executable, "-I", "-S", "-B", worker, str(control), str(calls), interpreter, bash]
    moves = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(outputs, start=1)]
    empty = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=[empty, *moves])  # noqa: TID251


class Relay:
    """The ends that the worker does not have: sockets for control and calls, pipes for what it prints."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in (_CONTROL, _CALLS)]
        pipes = [os.pipe() for _ in (_OUT, _ERR)]
        self._sockets = [pair[0] for pair in pairs]
        self._message_channels = {pair[0].fileno(): channel for channel, pair in enumerate(pairs)}
        self._prints = {pipe[0]: channel for channel, pipe in enumerate(pipes, start=_OUT)}
        for pair in pairs:
            pair[1].set_inheritable(True)
        _start(pairs[0][1].fileno(), pairs[1][1].fileno(), (pipes[0][1], pipes[1][1]))
        for pair, pipe in zip(pairs, pipes, strict=True):
            pair[1].close()
            os.close(pipe[1])

    def carry(self) -> None:
        """Carry everything until the worker has ended."""
        waiting = select.poll()
        for descriptor in (0, *self._message_channels, *self._prints):
            waiting.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if 0 in ready:
                channel, content = _receive()
                self._sockets[channel].sendall(content)
            ready_channels = [descriptor for descriptor in self._message_channels if descriptor in ready]
            # What a call printed goes out before the word that it has ended.
            for descriptor, channel in self._prints.items():
                if (
                    (ready_channels or descriptor in ready)
                    and not _forward(channel, descriptor)
                    and descriptor in ready
                ):
                    waiting.unregister(descriptor)
            if not all(
                _forward(self._message_channels[descriptor], descriptor) for descriptor in ready_channels
            ):
                return


if __name__ == "__main__":
    Relay().carry()
