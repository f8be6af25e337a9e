"""What Playwright's errors mean, as texts that a model can act on."""

import re

# Playwright's messages about a page, a context, a browser or its own process that ended.
_ENDED = re.compile(
    r"has been closed|was closed|Connection closed|Target closed|browser has disconnected", re.I
)
_COVERED = re.compile(r"^\s*-?\s*(<.*>.*) intercepts pointer events", re.MULTILINE)
# Whole lines of the log, because quotations from the page may contain any text.
_DELIVERED = re.compile(r"^[ -]*performing click action$", re.MULTILINE)
_RETRIED = re.compile(r"^[ -]*retrying click action", re.MULTILINE)
_COVER_CHARACTERS = 120


def has_ended(error: Exception) -> bool:
    """Return whether the page, its context or the whole browser ended."""
    return bool(_ENDED.search(str(error)))


def has_crashed(error: Exception) -> bool:
    """Return whether only the process of the page ended."""
    return "crashed" in str(error)


def is_navigated(error: Exception) -> bool:
    """Return whether the page went to another document while a script ran in it."""
    return "Execution context was destroyed" in str(error)


def network_error_code(error: Exception | str) -> str:
    """Return Chromium's code of a network error, such as `ERR_CONNECTION_REFUSED`; "" for other errors."""
    # The code comes before the address, which may contain any text.
    found = re.search(r"net::(ERR_\w+)", str(error))
    return found[1] if found else ""


def is_download(error: Exception) -> bool:
    """Return whether an address led to a download instead of a page."""
    return network_error_code(error) == "ERR_ABORTED" or "Download is starting" in str(error)


def explain_unopened(url: str, error: Exception | str) -> str:
    """Return the reason why the page at `url` could not be opened."""
    code = network_error_code(error)
    if code.startswith("ERR_SOCKS"):
        return f"{url} cannot be reached, or leads to an address that is not public; use another page."
    if code.startswith("ERR_CERT"):
        return f"{url} has no certificate that can be trusted; use another source."
    if not code and _ENDED.search(str(error)):
        return f"The browser ended while it read {url}; try again, a new one will be started."
    return f"The browser could not open {url} ({code or first_line(error)}); use another source."


def covering_tag(error: Exception) -> str | None:
    """Return the tag that covers the element and took the click; None when nothing covers it."""
    found = _COVERED.search(str(error))
    return found[1][:_COVER_CHARACTERS] if found else None


def is_delivered(error: Exception) -> bool:
    """Return whether the page got the click, and only did not finish handling it in time."""
    last = max((found.start() for found in _DELIVERED.finditer(str(error))), default=-1)
    return last >= 0 and "Timeout" in str(error) and not _RETRIED.search(str(error), last)


def explain_untouched(error: Exception, seconds: float) -> str:
    """Return why an element did not take an action within so many seconds."""
    message = str(error)
    if "not attached" in message:  # even if it was covered before
        return "it is no longer on the page; look at the page again"
    if cover := covering_tag(error):
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
    """Return the first line of a message of Playwright, without the method's name."""
    line = str(error).strip().partition("\n")[0][:300]
    return re.sub(r"^\w+\.\w+: ", "", line) or "no reason was given"


PAGE_STUCK = "the page does not answer. Open another address, or this one once more"


class BrowserEndedError(Exception):
    """The browser ended. Does not leave the drivers."""


class ActionFailedError(Exception):
    """Why an action failed, as part of the sentence that reports it. Does not leave the drivers."""
