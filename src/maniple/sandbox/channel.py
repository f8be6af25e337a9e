"""The host's end of what it says to a session's worker, and what the worker says to it.

Whoever runs inside can say anything here, so nothing that is heard is more than a claim of that session
about itself. Frames are described in `worker.py`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

_FIGURE = re.compile(r"figures/figure-[0-9]{1,9}\.png")
_MOST_FIGURES = 10
_KEYS = {
    frozenset({"ready"}),
    frozenset({"died"}),
    frozenset({"id", "exit_code"}),
    frozenset({"id", "interrupted"}),
    frozenset({"id", "exit_code", "value", "images"}),
}


class Forged(ValueError):
    """No worker of ours would say this."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a worker says; which fields are set depends on what about."""

    call: str = ""
    exit_code: int | None = None
    value: str = ""
    images: tuple[str, ...] = ()
    died: int | None = None
    ready: bool = False
    interrupted: bool = False


def parse(content: bytes) -> Said:
    """Read a frame from inside; raises `Forged` for anything that a worker does not say."""
    try:
        said = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise Forged("no JSON") from None
    if not isinstance(said, dict) or frozenset(said) not in _KEYS:
        raise Forged("no frame of a worker")
    return Said(
        call=_text(said.get("id", "")),
        exit_code=_code(said["exit_code"]) if "exit_code" in said else None,
        value=_text(said.get("value", "")),
        images=_figures(said.get("images", [])),
        died=_code(said["died"]) if "died" in said else None,
        ready="ready" in said,
        interrupted="interrupted" in said,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Forged("no text")
    # Halves of characters can be written in JSON and nowhere else.
    return value.encode(errors="replace").decode()


def _code(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 255:
        raise Forged("no exit code")
    return value


def _figures(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_FIGURES:
        raise Forged("no list of figures")
    if not all(isinstance(path, str) and _FIGURE.fullmatch(path) for path in value):
        raise Forged("no figure")
    return tuple(value)


class Channel(asyncio.Protocol):
    """Hands each frame to `heard`, and calls `broken` at the first one that is none, with what it was."""

    def __init__(
        self, limit_bytes: int, heard: Callable[[Said], None], broken: Callable[[str], None]
    ) -> None:
        self._limit_bytes = limit_bytes
        self._heard = heard
        self._broken = broken
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have its methods and not its name.
        self._transport = cast(asyncio.Transport, transport)

    def say(self, *words: str) -> None:
        """Send a frame; the last of the words may have lines. What nobody hears is lost."""
        if self._transport is None or self._transport.is_closing():
            return
        content = "\n".join(words).encode(errors="backslashreplace")
        self._transport.write(len(content).to_bytes(4, "big") + content)

    def close(self) -> None:
        """Say and hear no more."""
        self._heard, self._broken = _ignore, _ignore
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            length = int.from_bytes(self._received[:4], "big")
            if length > self._limit_bytes:
                self._break(f"a message of {length} bytes")
                return
            if len(self._received) < 4 + length:
                return
            content = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            try:
                said = parse(content)
            except Forged as error:
                self._break(str(error))
                return
            self._heard(said)

    def _break(self, why: str) -> None:
        broken = self._broken
        self.close()
        self._received.clear()
        broken(why)


def _ignore(anything: object) -> None:
    """Hear nothing."""
