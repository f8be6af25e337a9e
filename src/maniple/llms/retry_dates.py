"""Retry-After dates, read by the clock of who wrote them."""

import httpx2

from maniple.retry_after import retry_after_seconds


async def wait_by_their_clock(response: httpx2.Response) -> None:
    """Turn a Retry-After date into seconds from the response's own Date; a hook of the HTTP client.

    The OpenAI SDK subtracts this machine's clock, and gives up when that is wrong by more than two minutes.
    """
    seconds = retry_after_seconds(response.headers)
    if seconds is not None:
        response.headers["retry-after"] = str(seconds)
