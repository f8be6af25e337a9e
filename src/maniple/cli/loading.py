"""Import the frameworks in two thirds of the time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Let no garbage be collected meanwhile, and keep what was made out of every later collection.

    What modules make stays, and there is so much of it that looking through it again and again takes a
    third of the time (https://docs.python.org/3/library/gc.html#gc.freeze).
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
