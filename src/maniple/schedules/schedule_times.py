"""The times of a schedule: cron expressions in a time zone, and single moments.

The rules for summer time are those of Debian's cron, as `cronsim` has them. A time of day that the clock
jumps over (02:30 in the night in which 02:00 becomes 03:00) comes at the end of the gap, 03:00. A time of day
that comes twice is due the first time only. An expression that begins its hours or minutes with `*` follows
real time instead: it is due in each of the two hours, and in none of the gap.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from maniple.errors import ManipleError

_CRON_FIELDS = 5
_MAX_CRON_CHARACTERS = 200
_CRON_HELP = (
    "Write minute, hour, day of the month, month and day of the week: '0 8 * * 1' is every Monday at 8, "
    "'*/15 * * * *' every quarter of an hour"
)


class InvalidSchedule(ManipleError):
    """A schedule cannot be as it is described; the message has the reason and the remedy."""

    code = "invalid_schedule"


def load_zone(name: str) -> ZoneInfo:
    """Return the time zone of an IANA name; raises `InvalidSchedule`. May read a file."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSchedule(
            f"There is no time zone {name[:60]!r}. Use a name such as Europe/Berlin or UTC."
        ) from error


def _times_after(cron: str, zone: ZoneInfo, after: float) -> Iterator[datetime]:
    if len(cron) > _MAX_CRON_CHARACTERS or len(cron.split()) != _CRON_FIELDS:
        raise InvalidSchedule(f"{cron[:60]!r} is no cron expression of five fields. {_CRON_HELP}.")
    try:
        return CronSim(cron.upper(), datetime.fromtimestamp(after, UTC).astimezone(zone))
    except CronSimError as error:
        raise InvalidSchedule(f"{cron!r} is no cron expression: {error}. {_CRON_HELP}.") from error


def next_time(cron: str, zone: str, after: float) -> float | None:
    """Return the first time (Unix seconds) of a cron expression that is later than `after`.

    Returns None for an expression without any in the next 50 years. Raises `InvalidSchedule`.
    """
    return next(iter(list_next_times(cron, zone, after, 1)), None)


def list_next_times(cron: str, zone: str, after: float, count: int) -> list[float]:
    """Return the next times (Unix seconds) later than `after`, at most `count`; raises `InvalidSchedule`."""
    found: list[float] = []
    for moment in _times_after(cron, load_zone(zone), after):
        at = moment.timestamp()
        # At the end of a gap, two times of day are one moment.
        if at > (found[-1] if found else after):
            found.append(at)
        if len(found) >= count:
            break
    return found


def latest_time(cron: str, zone: str, now: float) -> float | None:
    """Return the last time (Unix seconds) of a cron expression that is not after `now`."""
    local = datetime.fromtimestamp(now, UTC).astimezone(load_zone(zone))
    backwards = (one.timestamp() for one in CronSim(cron.upper(), local, reverse=True))
    early = next((at for at in backwards if at < now), None)
    if early is None:
        return None
    # Backwards, `cronsim` leaves out the second of two equal hours: those after it are found forwards.
    latest = early
    for moment in _times_after(cron, load_zone(zone), early):
        if moment.timestamp() > now:
            break
        latest = moment.timestamp()
    return latest


def parse_moment(text: str, zone: str) -> float:
    """Return the Unix seconds of an ISO 8601 date and time, which is in `zone` unless it has an offset.

    Raises `InvalidSchedule`, also for a time of day that the zone's clock jumps over.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidSchedule(
            f"{text[:60]!r} is no date and time. Write 2030-01-31T08:00, with an offset if you like."
        ) from error
    if moment.tzinfo is not None:
        return moment.timestamp()
    local = moment.replace(tzinfo=load_zone(zone))
    seconds = local.timestamp()
    if datetime.fromtimestamp(seconds, local.tzinfo).replace(tzinfo=None) != moment:
        raise InvalidSchedule(f"The clock of {zone} jumps over {text}. Choose another time.")
    return seconds
