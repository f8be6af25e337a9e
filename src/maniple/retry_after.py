"""The header `Retry-After`: the time until the next request (RFC 9110, 10.2.3)."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# Only nine digits are read; thirty years are long enough.
_SECONDS = re.compile(r"(\d{1,9})\d*(\.\d{1,9})?", re.ASCII)
_MAX_DATE_LENGTH = 100


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in a response's `headers` (names in lower case); None if there are none.

    A date is relative to the response's own `Date`, which has the same clock; without one, to this machine's
    clock.
    """
    value = headers.get("retry-after", "").strip()
    if number := _SECONDS.fullmatch(value):
        return float(number[1] + (number[2] or ""))
    until = _timestamp(value)
    if until is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return max(until - (time.time() if now is None else now), 0.0)


def _timestamp(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date[:_MAX_DATE_LENGTH]).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
