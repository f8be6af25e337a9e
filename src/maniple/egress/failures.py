"""What went wrong with a connection or a fetch, as a sentence that a model can act on."""

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


def fetch_error(url: str, error: Exception) -> FetchError:
    """The error to raise instead of `error`; `url` is the address that was asked for."""
    words = str(error) or type(error).__name__
    for table, raised in ((_FORBIDDEN, FinalError), (_FAILED, FetchError)):
        for kind, sentence in table:
            if isinstance(error, kind):
                return raised(sentence.format(url=url, error=words))
    return FetchError(f"{url} could not be fetched: {words}.")
