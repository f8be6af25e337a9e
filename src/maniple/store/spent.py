"""What is left of a deleted run: what it had used counts for its owner's day."""

from dataclasses import dataclass
from typing import Protocol

from maniple.store.records import Usage

KEPT_SECONDS = 2 * 24 * 3600.0


class Used(Protocol):
    """What a run, there or deleted, says of what it used."""

    @property
    def owner(self) -> str: ...
    @property
    def created_at(self) -> float: ...
    @property
    def ended_at(self) -> float | None: ...
    @property
    def usage(self) -> Usage: ...


@dataclass(frozen=True, slots=True)
class Spent:
    """Kept of a deleted run for `KEPT_SECONDS`; nothing of what it was about is."""

    owner: str
    created_at: float
    ended_at: float | None
    usage: Usage

    @classmethod
    def by(cls, run: Used) -> "Spent":
        """Return what is to be kept of a run."""
        return cls(run.owner, run.created_at, run.ended_at, run.usage)

    def is_kept(self, now: float) -> bool:
        """Whether a window of a day may still count it.

        A clock that was ahead leaves times to come: beyond `KEPT_SECONDS` those are forgotten, too.
        """
        at = self.created_at if self.ended_at is None else self.ended_at
        return abs(at - now) <= KEPT_SECONDS


def is_within(run: Used, since: float, until: float) -> bool:
    """Whether a run began or ended after `since` and not after `until`."""
    return any(at is not None and since < at <= until for at in (run.created_at, run.ended_at))
