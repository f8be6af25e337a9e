"""`Retry-After`: how long whoever answered wants to be left alone (RFC 9110, 10.2.3)."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# Of a longer number the first nine digits are read: thirty years are as good as for ever.
_SECONDS = re.compile(r"(\d{1,9})\d*(\.\d{1,9})?", re.ASCII)
_LONGEST_DATE = 100


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response's `headers` (by names in lower case) ask for; None for none.

    A date counts from the response's own `Date`, and from this machine's clock only where it has none:
    the one who named it knows what it meant.
    """
    said = headers.get("retry-after", "").strip()
    if number := _SECONDS.fullmatch(said):
        return float(number[1] + (number[2] or ""))
    until = _timestamp(said)
    if until is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return max(until - (time.time() if now is None else now), 0.0)


def _timestamp(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date[:_LONGEST_DATE]).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
