"""An httpx transport that connects to checked addresses only."""

import ssl

import httpx

from maniple.egress import AddressGuard
from maniple.errors import FetchError

_DEFAULT_PORTS = {"http": 80, "https": 443}


class GuardedTransport(httpx.AsyncBaseTransport):
    """Checks the address of every request, so of every redirect too, and connects to what was checked."""

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext) -> None:
        self._guard = guard
        # No connection is used twice: they are kept by address, which names of others may share.
        self._inner = httpx.AsyncHTTPTransport(verify=tls, limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; raises `FetchError` when its address may not be connected to."""
        url = request.url
        if url.scheme not in _DEFAULT_PORTS:
            raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
        address = await self._guard.resolve(url.host, url.port or _DEFAULT_PORTS[url.scheme])
        # The Host header is already set, and the certificate must be the name's, not the address's.
        pinned = httpx.Request(
            method=request.method,
            url=url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": url.raw_host.decode("ascii")},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close what is still connected."""
        await self._inner.aclose()
