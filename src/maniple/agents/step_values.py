"""Values that belong to one step of one agent, wherever in it they are asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def held(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give `variable` a value in everything that is done within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
