"""Retry-After dates, read by the clock of who wrote them."""

from email.utils import parsedate_to_datetime

import httpx2


async def wait_by_their_clock(response: httpx2.Response) -> None:
    """Turn a Retry-After date into seconds from the response's own Date; a hook of the HTTP client.

    The OpenAI SDK subtracts this machine's clock, and gives up when that is wrong by more than two minutes.
    """
    try:
        until = parsedate_to_datetime(response.headers["retry-after"])
        seconds = (until - parsedate_to_datetime(response.headers["date"])).total_seconds()
    except (KeyError, TypeError, ValueError):  # there is none, or it is in seconds already
        return
    response.headers["retry-after"] = f"{max(seconds, 0):.0f}"
