"""What went wrong with a fetch, as a sentence that a model can act on."""

from http import HTTPStatus

import drawbridge
import httpx

from maniple.errors import FetchError

_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (
        drawbridge.BlockedAddressError,
        "{url} has an address that is not public, so it was not fetched; use a public page. "
        "(The operator can open a network with fetch.allow_private.)",
    ),
    (drawbridge.UnsafePortError, "{url} names a port that no web server uses; use the usual address."),
    (httpx.TooManyRedirects, "{url} redirects too often; use the address it should end at."),
    (httpx.UnsupportedProtocol, "{url} leads to something else than http or https; use a web address."),
    (drawbridge.DrawbridgeDNSError, "{url} was not found: its host name has no address. Check the spelling."),
    (TimeoutError, "{url} took too long to answer; try another source."),
    (httpx.TimeoutException, "{url} took too long to answer; try another source."),
    (httpx.ConnectError, "{url} could not be connected to: {error}. Try another source."),
    (httpx.TransportError, "{url} broke off while answering: {error}. Try again or use another source."),
    (httpx.InvalidURL, "{url} is not a valid address: {error}."),
    (UnicodeError, "{url} is not a valid address: its host name cannot be encoded."),
)


def fetch_error(url: str, error: Exception) -> FetchError:
    """The error to raise instead of `error`; `url` is the address that was asked for."""
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return FetchError(sentence.format(url=url, error=str(error) or type(error).__name__))
    return FetchError(f"{url} could not be fetched: {error}.")


def status_error(url: str, status: int) -> FetchError:
    """The error for an answer that is no page: HTTP status 300 and above, or one without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It wants fewer requests; use another source for now.",
    }.get(status, "Use another source.")
    return FetchError(f"{url} answered {status} ({phrase}). {advice}")
