"""What went wrong with a fetch, as a sentence that a model can act on."""

from http import HTTPStatus

import drawbridge
import httpx

from maniple.errors import FetchError


class FinalError(FetchError):
    """The page may not be read, or is none: it is not to be tried in another way, by another reader."""


_FORBIDDEN: tuple[tuple[type[Exception], str], ...] = (
    (
        drawbridge.BlockedAddressError,
        "{url} has an address that is not public, so it was not fetched; use a public page. "
        "(The operator can open a network with fetch.allow_private.)",
    ),
    (drawbridge.UnsafePortError, "{url} names a port that no web server uses; use the usual address."),
    (httpx.InvalidURL, "{url} is not a valid address: {error}."),
    (UnicodeError, "{url} is not a valid address: its host name cannot be encoded."),
)
_FAILED: tuple[tuple[type[Exception], str], ...] = (
    (httpx.UnsupportedProtocol, "{url} leads to something else than http or https; use a web address."),
    (drawbridge.DrawbridgeDNSError, "{url} was not found: its host name has no address. Check the spelling."),
    (TimeoutError, "{url} took too long to answer; try another source."),
    (httpx.TimeoutException, "{url} took too long to answer; try another source."),
    (httpx.ConnectError, "{url} could not be connected to: {error}. Try another source."),
    (httpx.TransportError, "{url} broke off while answering: {error}. Try again or use another source."),
)
_DAY_SECONDS = 86_400.0
_FINAL_STATUSES = {401, 404, 410, 451}


def fetch_error(url: str, error: Exception) -> FetchError:
    """The error to raise instead of `error`; `url` is the address that was asked for."""
    words = str(error) or type(error).__name__
    for table, raised in ((_FORBIDDEN, FinalError), (_FAILED, FetchError)):
        for kind, sentence in table:
            if isinstance(error, kind):
                return raised(sentence.format(url=url, error=words))
    return FetchError(f"{url} could not be fetched: {words}.")


def status_error(url: str, status: int, retry_after_seconds: float | None = None) -> FetchError:
    """The error for an answer that is no page: HTTP status 300 and above, or one without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        403: "It keeps programs out or needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It wants fewer requests; use another source for now.",
    }.get(status, "Use another source.")
    if retry_after_seconds is not None and retry_after_seconds > _DAY_SECONDS:
        advice = "It is not to be asked again today; use another source."
    elif retry_after_seconds is not None:
        advice = f"It can be asked again in {retry_after_seconds:,.0f} s; use another source until then."
    raised = FinalError if status in _FINAL_STATUSES else FetchError
    return raised(f"{url} answered {status} ({phrase}). {advice}")


def broken_redirect(url: str, cause: str) -> FetchError:
    """The error for the page `url` that leads to no address; `cause` is that, or what is wrong with it."""
    return FetchError(f"{url} redirects to what is not a valid address ({cause[:200]}); use another source.")


def too_many_redirects(url: str) -> FetchError:
    """The error for a page that leads on and on; `url` is the address that was asked for."""
    return FetchError(f"{url} redirects too often; use the address it should end at.")
