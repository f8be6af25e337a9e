"""How amounts and times are written on the page. None is what is not known."""

from datetime import UTC, datetime

UNKNOWN = "–"
_LATEST = 32_503_680_000
"""The year 3000, in Unix seconds: what is later is no time."""


def duration(seconds: float | None) -> str:
    """Return `250 ms`, `4.2 s` or `3 min 05 s`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02} s"


def moment(time: float | None) -> str:
    """Return a Unix time as `2026-11-22 20:15:07 UTC`."""
    if time is None or time > _LATEST:
        return UNKNOWN
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(bytes_: int) -> str:
    """Return `999 B`, `2.0 kB` or `1.5 MB`."""
    if bytes_ < 1000:
        return f"{bytes_} B"
    return f"{bytes_ / 1e3:,.1f} kB" if bytes_ < 1e6 else f"{bytes_ / 1e6:,.1f} MB"
