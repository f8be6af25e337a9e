"""What Playwright's errors mean, in words that a model can act on."""

import re

# In what Playwright says of a page, a context, a browser or its own process that is no longer there.
_ENDED = re.compile(
    r"has been closed|was closed|Connection closed|Target closed|browser has disconnected", re.I
)
_COVERED = re.compile(r"^\s*-?\s*(<.*>.*) intercepts pointer events", re.MULTILINE)
# Whole lines of Playwright's, for what it tells of the page may have any words.
_GIVEN = re.compile(r"^[ -]*performing click action$", re.MULTILINE)
_RETRIED = re.compile(r"^[ -]*retrying click action", re.MULTILINE)
_COVER_CHARACTERS = 120


def has_ended(error: Exception) -> bool:
    """Whether the page, its context or the whole browser ended."""
    return bool(_ENDED.search(str(error)))


def has_crashed(error: Exception) -> bool:
    """Whether the process of the page ended, and nothing else."""
    return "crashed" in str(error)


def code_of(error: Exception | str) -> str:
    """Return Chromium's name for what went wrong with an address, such as `ERR_CONNECTION_REFUSED`, or ""."""
    # It comes before the address in the message, which may hold any words.
    found = re.search(r"net::(ERR_\w+)", str(error))
    return found[1] if found else ""


def is_download(error: Exception) -> bool:
    """Whether an address led to a file instead of a page."""
    return code_of(error) == "ERR_ABORTED" or "Download is starting" in str(error)


def unopened(url: str, error: Exception | str) -> str:
    """Return why the page at `url` could not be opened."""
    code = code_of(error)
    if code.startswith("ERR_SOCKS"):
        return f"{url} cannot be reached, or leads to an address that is not public; use another page."
    if code.startswith("ERR_CERT"):
        return f"{url} has no certificate that can be trusted; use another source."
    if not code and _ENDED.search(str(error)):
        return f"The browser ended while it read {url}; try again, a new one will be started."
    return f"The browser could not open {url} ({code or first_line(error)}); use another source."


def cover_of(error: Exception) -> str | None:
    """Return the tag that took the click instead of the element, None when nothing lay over it."""
    found = _COVERED.search(str(error))
    return found[1][:_COVER_CHARACTERS] if found else None


def was_given(error: Exception) -> bool:
    """Whether the page was given the click, and only did not come back from it in time."""
    last = max((found.start() for found in _GIVEN.finditer(str(error))), default=-1)
    return last >= 0 and "Timeout" in str(error) and not _RETRIED.search(str(error), last)


def untouched(error: Exception, seconds: float) -> str:
    """Return why an element did not take what was done to it within so many seconds."""
    message = str(error)
    if "not attached" in message:  # whatever lay over it before
        return "it is no longer on the page; look at the page again"
    if cover := cover_of(error):
        return f"{cover} lies over it; close or scroll away what covers it first"
    for sign, why in _REASONS:
        if sign in message:
            return why
    if "Timeout" in message:
        return f"it did not take it within {seconds:g} seconds; look at the page again"
    return first_line(error)


_REASONS = (
    ("element is not enabled", "it is disabled; something else on the page must be done first"),
    ("element is not editable", "it is read-only; click it, what it opens may set it"),
    ("element is not visible", "it is not visible now; look at the page again"),
    ("outside of the viewport", "it cannot be brought into the window; scroll, then look at the page again"),
    ("element is not stable", "it does not come to rest; wait, then look at the page again"),
)


def first_line(error: Exception | str) -> str:
    """Return the first line of what Playwright says, without the name of its method."""
    line = str(error).strip().partition("\n")[0][:300]
    return re.sub(r"^\w+\.\w+: ", "", line) or "no reason was given"


STUCK = "the page does not answer. Open another address, or this one once more"


class EndedError(Exception):
    """The browser ended; never leaves the drivers."""


class Unable(Exception):
    """Why an action cannot be done, for the sentence that says so; never leaves the drivers."""
