"""What a process knows of its database server: whether it answers, and which calls wait for it."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import AsyncConnection

from maniple.errors import StoreError

AWAY_SECONDS = 2.0
"""How long a call that does not wait (`store.waiting`) is tried again after its server has gone away."""
LEAST_SECONDS = 1.0
"""How long each call is tried at least: the server may be back, and connections of before fail first."""
PATIENCE_SECONDS = 20.0
"""How long a call waits for a connection of a server that answers, or for the locks of others."""
SHORTEST_SECONDS = 0.2
"""How long each call waits for a connection at least: one may be made meanwhile."""
SILENT_PART = 0.8
"""The part of its lease for which a process may go without hearing of its database."""


class ServerContact:
    """Whether the server answers, as the calls and the beats of this process find it.

    `on_answer` is called when the server answers again.
    """

    def __init__(self, on_answer: Callable[[], None]) -> None:
        self.failure: StoreError | None = None
        """Why the server is away; None while it answers."""
        self.refusal: StoreError | None = None
        """Why the last beat was not stored, such as a full disk; None if it was."""
        self.heard_at = time.monotonic()
        """When the last beat was sent that the server, or the system that cannot reach it, has answered."""
        self.longest_silence = 0.0
        """The longest time, in seconds, for which other processes may have heard no beat of this one."""
        self._on_answer = on_answer
        self._away_since = self._answering_since = float("-inf")
        self._bounds: dict[asyncio.Timeout, float] = {}
        self._used: set[AsyncConnection] = set()

    def hear(self, sent_at: float) -> None:
        """Take note that a beat was answered, which was sent at `sent_at` (monotonic seconds)."""
        self.longest_silence = max(self.longest_silence, time.monotonic() - self.heard_at)
        self.heard_at = sent_at

    def report_answer(self) -> None:
        """Take note that the server answers."""
        if self.failure is None:
            return
        self.failure, self._answering_since = None, time.monotonic()
        self._move_bounds()
        self._on_answer()

    def report_failure(self, failure: StoreError) -> None:
        """Take note that the server is away."""
        is_new, self.failure = self.failure is None, failure
        if is_new:
            self._away_since = time.monotonic()
            self._move_bounds()

    def report_missed_beat(self, reason: StoreError) -> None:
        """Take note that a beat was not stored, and those of other processes may not be either."""
        self.refusal, self._answering_since = reason, time.monotonic()

    def report_silence(self, failure: StoreError) -> None:
        """Take note that the server neither answers nor refuses, and end the calls that wait for it.

        A connection whose other end is gone without a word would let them wait for many minutes.
        """
        self.report_failure(failure)
        for connection in self._used:
            _shut(connection)

    def has_answered_for(self, seconds: float) -> bool:
        """Return whether the server has stored each beat for so long, or has never been away."""
        return self.failure is None and time.monotonic() - self._answering_since >= seconds

    def deadline(self, begun: float) -> float:
        """Return until when a call that began then is tried (both monotonic seconds)."""
        if self.failure is None:
            return begun + PATIENCE_SECONDS
        return max(begun + LEAST_SECONDS, self._away_since + AWAY_SECONDS)

    @contextmanager
    def using(self, connection: AsyncConnection) -> Generator[None]:
        """End what waits on this connection inside of the context when the server is silent."""
        self._used.add(connection)
        try:
            yield
        finally:
            self._used.discard(connection)

    @contextmanager
    def bounding(self, bound: asyncio.Timeout, begun: float) -> Generator[None]:
        """Let `bound` end at the deadline of a call that began then; it moves when the server goes away."""
        self._bounds[bound] = begun
        self._move(bound, begun)
        try:
            yield
        finally:
            del self._bounds[bound]

    def _move_bounds(self) -> None:
        for bound, begun in self._bounds.items():
            self._move(bound, begun)

    def _move(self, bound: asyncio.Timeout, begun: float) -> None:
        if not bound.expired():
            left = max(self.deadline(begun) - time.monotonic(), SHORTEST_SECONDS)
            bound.reschedule(asyncio.get_running_loop().time() + left)


def _shut(connection: AsyncConnection) -> None:
    """End the connection for whoever waits on it: closed, it would let them wait."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
