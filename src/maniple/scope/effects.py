"""The moment at which a tool call begins its work: until then it has had no effect."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_RECORD = ContextVar[Callable[[], Awaitable[None]] | None]("_RECORD", default=None)
"""Records the beginning of the work of the current call."""


@contextmanager
def recording_effect(record: Callable[[], Awaitable[None]]) -> Generator[None]:
    """Let `begin_effect` await `record` in the tool that is called in this context."""
    token = _RECORD.set(record)
    try:
        yield
    finally:
        _RECORD.reset(token)


async def begin_effect() -> None:
    """Record that the current tool call has an effect from now on.

    A tool whose metadata have `marks_effect` awaits this directly before its work, after it has waited for a
    place or started what it works in. If the program is stopped before, the call is simply made again.
    """
    if (record := _RECORD.get()) is not None:
        await record()
