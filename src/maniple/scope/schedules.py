"""What a conversation asks of the schedules."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ScheduleWish:
    """A task for later: at the times of `cron`, or once `at` (ISO 8601), in an IANA time zone."""

    task: str
    cron: str = ""
    at: str = ""
    time_zone: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "ScheduleWish":
        """Return what a model's or a user's arguments ask for; other keys are ignored."""
        return cls(**{name: str(arguments.get(name) or "").strip() for name in cls.__slots__})

    def arguments(self) -> dict[str, str]:
        """Return what it names, as the arguments of the tool."""
        return {name: value for name, value in asdict(self).items() if value}


class RunSchedules(Protocol):
    """Makes schedules for the owner of a run, whose options their runs have."""

    @property
    def time_zone(self) -> str:
        """The zone of this machine, for a user who names none."""
        ...

    async def list_times(self, wish: ScheduleWish) -> Sequence[str]:
        """Return the next times of a wish, for people; raises `ManipleError` if it cannot be fulfilled."""
        ...

    async def add(self, wish: ScheduleWish, run_id: str) -> Sequence[str]:
        """Make the schedule that a run proposes, unless it has been made before; return its next times.

        Raises `ManipleError`.
        """
        ...
