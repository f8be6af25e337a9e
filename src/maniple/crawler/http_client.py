"""The HTTP client of the crawler: user agent, checked connections, errors and decompression."""

import ssl
from http import HTTPStatus
from importlib.metadata import version

import httpx

from maniple.egress import AddressGuard, PermanentFetchError
from maniple.egress.body_decoders import BodyDecoder, DamagedBodyError, find_decoder
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.egress.guard import require_resolved
from maniple.errors import FetchError

ROBOTS_TOKEN = "maniple"
"""The name of this agent in robots.txt."""


def user_agent(contact: str | None) -> str:
    """Return the `User-Agent` header; `contact` is the operator's address for owners of sites. Blocks.

    It begins like that of every well-known robot, because firewalls block other names.
    """
    where = f"; +{contact}" if contact else ""
    return f"Mozilla/5.0 (compatible; {ROBOTS_TOKEN}/{version('maniple')}{where})"


_DEFAULT_PORTS = {"http": 80, "https": 443}


# No keep-alive: connections are pooled by address, which several names may share.
_LIMITS = httpx.Limits(max_keepalive_connections=0)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Checks the address of every request, including redirects, and connects to the checked address.

    A proxy gets the name and resolves it (see `AddressGuard`).
    """

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext) -> None:
        self._guard = guard
        self._inner = EnvironmentTransport(httpx, tls, proxies=guard.proxies, limits=_LIMITS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; raises `FetchError` if its address is not allowed."""
        url = request.url
        if url.scheme not in _DEFAULT_PORTS:
            raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
        port = url.port or _DEFAULT_PORTS[url.scheme]
        address = await self._guard.resolve(url.host, port)
        if self._guard.proxies.find(url.scheme, url.host, port) is not None:
            return await self._send_through_proxy(request)
        # The Host header is already set. The certificate must match the name, not the address.
        pinned = httpx.Request(
            method=request.method,
            url=url.copy_with(host=require_resolved(url.host, address)),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": url.raw_host.decode("ascii")},
        )
        return await self._inner.direct.handle_async_request(pinned)

    async def _send_through_proxy(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            await response.aclose()
            raise FetchError(
                f"{request.url} was not reached: {self._guard.proxies.describe(request.url.scheme)} wants "
                "another user name and password. The operator must correct the variable."
            )
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


_DAY_SECONDS = 86_400.0


_FINAL_STATUSES = {401, 404, 410, 451}


def status_error(url: str, status: int, retry_after_seconds: float | None = None) -> FetchError:
    """Return the error for a response without a page: HTTP status 300 and above, or without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        403: "It keeps programs out or needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It limits requests; use another source for now.",
    }.get(status, "Use another source.")
    if retry_after_seconds is not None and retry_after_seconds > _DAY_SECONDS:
        advice = "It is not to be asked again today; use another source."
    elif retry_after_seconds is not None:
        advice = f"It can be asked again in {retry_after_seconds:,.0f} s; use another source until then."
    raised = PermanentFetchError if status in _FINAL_STATUSES else FetchError
    return raised(f"{url} answered {status} ({phrase}). {advice}")


def broken_redirect_error(url: str, cause: str) -> FetchError:
    """Return the error for a redirect of `url` to an invalid address.

    `cause` is the address or the reason.
    """
    return FetchError(f"{url} redirects to an invalid address ({cause[:200]}); use another source.")


def too_many_redirects_error(url: str) -> FetchError:
    """Return the error for too many redirects; `url` is the requested address."""
    return FetchError(f"{url} redirects too often; use its final address.")


ACCEPTED_ENCODINGS = "gzip, deflate, br, zstd"
"""The value of the `Accept-Encoding` header."""


_MAX_ENCODINGS = 3


async def read_body(response: httpx.Response, url: str, max_bytes: int, *, cut: bool = False) -> bytes:
    """Return the decompressed body; with `cut`, the first `max_bytes` of a longer one instead of an error.

    Raises:
        FetchError: it is longer than `max_bytes`, damaged, incomplete, or has an unsupported encoding.
    """
    first, *others = _decoders(response.headers.get("content-encoding", ""), url)
    length = response.headers.get("content-length", "")
    if not cut and length.isascii() and length.isdecimal() and int(length[:20]) > max_bytes:
        raise _too_large(url, max_bytes)
    try:
        body = await _read_first_encoding(response, first, max_bytes)
        longest = len(body)
        for other in others:
            body = other.decode(body[:max_bytes], max_bytes + 1)
            longest = max(longest, len(body))
    except DamagedBodyError as error:
        raise FetchError(f"{url} sent damaged data; try again or use another source.") from error
    if longest > max_bytes and not cut:
        raise _too_large(url, max_bytes)
    if not cut and not all(one.is_complete for one in (first, *others)):
        raise FetchError(f"{url} broke off in the middle; try again or use another source.")
    return body[:max_bytes]


async def _read_first_encoding(response: httpx.Response, stream: BodyDecoder, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += stream.decode(chunk, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            break
    return bytes(body)


def _too_large(url: str, max_bytes: int) -> FetchError:
    return FetchError(f"{url} is larger than {max_bytes:,} bytes; look for a smaller page.")


def _decoders(encodings: str, url: str) -> list[BodyDecoder]:
    """Return the decoders of a body, in the order of decoding."""
    names = [name.strip() for name in encodings.lower().split(",", _MAX_ENCODINGS)]
    found = [one for name in reversed(names) if (one := find_decoder(name)) is not None]
    if len(found) < len(names) or len(names) > _MAX_ENCODINGS:
        raise FetchError(
            f"{url} is compressed with {encodings[:40]}, which is not supported; use another source."
        )
    return found
