"""How long work tells its user what it does."""

from typing import Protocol


class Progress(Protocol):
    """Takes one line about what happens now; called several times a second, never waited for."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Say `text`; `done` of `total` bytes are there, where bytes are what is worked on."""
        ...


class Silent:
    """Says nothing."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Say nothing."""
