"""The transport of an HTTP client behind a company's network: proxies, NO_PROXY and certificates.

It serves httpx and httpx2, which read the variables in ways of their own: without networks in NO_PROXY, and
with errors that do not name the proxy.
"""

import ssl
from functools import cache
from types import ModuleType, TracebackType
from typing import Any

from maniple.egress.certificates import describe_certificate_failure, tls_context
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.egress.upstream import UpstreamProxy
from maniple.errors import causes_of
from maniple.types import is_dict

_PROXY_EXTENSION = "maniple.proxy"
_SOCKS_SETUP = "socks.setup_socks5_connection"
"""The step of httpcore that asks a SOCKS proxy for the connection, as its `trace` extension names it."""


class ProxyFailed(Exception):
    """The proxy that the environment names cannot be reached, or nothing came back through it.

    Each raised one is a `TransportError` of the client's library as well.
    """

    proxy: str
    """The variable and the host."""
    reason: str
    is_connected: bool
    """Whether the proxy took the connection: the server behind it may be at fault as well."""


def proxy_of(error: BaseException) -> str:
    """Return the proxy, with its variable, of the request that failed with an error; "" for none.

    Unlike `ProxyFailed` this tells of answers that had begun.
    """
    for one in causes_of(error):
        response = getattr(one, "response", None)
        fields = {**getattr(response, "__dict__", {}), **one.__dict__}
        # Not `error.request`, which raises an error in both libraries where there is none.
        extensions = getattr(fields.get("_request") or fields.get("request"), "extensions", None)
        if is_dict(extensions) and (proxy := extensions.get(_PROXY_EXTENSION)):
            return str(proxy)
    return ""


def mark_proxy(request: Any, proxy: str) -> None:
    """Record the proxy of a request for `proxy_of`; "" for none."""
    request.extensions = {**request.extensions, _PROXY_EXTENSION: proxy}


class EnvironmentTransport:
    """Sends each request through the proxy that the environment names for it, or directly.

    `library` is httpx or httpx2, `direct` the transport without a proxy (by default the library's), `options`
    those of its `AsyncHTTPTransport`. Without `proxies` those of the environment are read. Blocks: without a
    `context` it reads certificates from disk. Raises `ConfigError` if the environment names a proxy or
    certificates that cannot be used.
    """

    def __init__(
        self,
        library: ModuleType,
        context: ssl.SSLContext | None = None,
        direct: Any = None,
        proxies: EnvironmentProxies | None = None,
        **options: Any,
    ) -> None:
        self._library = library
        self._proxies = proxies or EnvironmentProxies.read()
        context = context or tls_context()
        self.direct = direct or library.AsyncHTTPTransport(verify=context, **options)
        self._by_proxy: dict[str, Any] = {}
        for scheme, address in self._proxies.by_scheme.items():
            if address in self._by_proxy:
                continue
            UpstreamProxy.parse(address, self._proxies.variables[scheme])
            proxy = library.Proxy(address, ssl_context=context if address.startswith("https:") else None)
            transport = library.AsyncHTTPTransport(verify=context, proxy=proxy, **options)
            self._by_proxy[address] = transport

    def route(self, url: Any) -> Any:
        """Return the transport for an address."""
        proxy = self._proxies.find(url.scheme, url.host, url.port)
        return self.direct if proxy is None else self._by_proxy[proxy]

    async def handle_async_request(self, request: Any) -> Any:
        """Send `request`; raises the library's `TransportError`, which is a `ProxyFailed` for the proxy."""
        transport, library = self.route(request.url), self._library
        proxy = "" if transport is self.direct else self._proxies.describe(request.url.scheme)
        mark_proxy(request, proxy)
        if proxy:
            _close_refused(request)
        try:
            return await transport.handle_async_request(request)
        except library.TransportError as error:
            if refused := describe_certificate_failure(error):
                raise library.ConnectError(refused, request=request) from error
            if proxy and (failed := _proxy_failure_of(error, library, proxy, request)):
                raise failed from error
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self.direct, *self._by_proxy.values()):
            await transport.aclose()

    async def __aenter__(self) -> "EnvironmentTransport":
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()


def _close_refused(request: Any) -> None:
    """Let the connection be closed when a SOCKS proxy refuses `request`: httpcore 1.0 leaves it open."""
    inner = request.extensions.get("trace")
    streams: list[Any] = []

    async def trace(name: str, info: dict[str, Any]) -> None:
        if name == f"{_SOCKS_SETUP}.started":
            streams.append(info["stream"])
        elif name == f"{_SOCKS_SETUP}.failed":
            await streams.pop().aclose()
        if inner is not None:
            await inner(name, info)

    request.extensions = {**request.extensions, "trace": trace}


def _proxy_failure_of(error: Any, library: ModuleType, proxy: str, request: Any) -> Any:
    """Return the `ProxyFailed` for an error before the answer; None if the proxy has no part in it."""
    if isinstance(error, (library.PoolTimeout, library.LocalProtocolError)) or _is_of_tls(error):
        return None
    if isinstance(error, (library.ConnectError, library.ConnectTimeout, library.ProxyError)):
        return _proxy_failure(library.ConnectError)(proxy, error, request, is_connected=False)
    return _proxy_failure(type(error))(proxy, error, request, is_connected=True)


def _is_of_tls(error: BaseException) -> bool:
    """Return whether the other side spoke TLS, and refused; a connection that just ended is none of it."""
    ended = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
    return any(isinstance(one, ssl.SSLError) and not isinstance(one, ended) for one in causes_of(error))


@cache
def _proxy_failure(kind: type[Any]) -> type[Any]:
    """Return the class of `ProxyFailed` that is a `kind` of the client's library as well."""

    class ProxyTransportError(ProxyFailed, kind):
        def __init__(self, proxy: str, error: Exception, request: Any, *, is_connected: bool) -> None:
            self.proxy, self.reason = proxy, str(error) or type(error).__name__
            self.is_connected = is_connected
            failed = f"the proxy that {proxy} names fails ({self.reason})"
            silent = f"no answer came through the proxy that {proxy} names ({self.reason})"
            message = (
                f"{silent if is_connected else failed}. "
                "Correct or unset the variable, or name the host in NO_PROXY"
            )
            kind.__init__(self, message, request=request)  # pyright: ignore[reportCallIssue]

    return ProxyTransportError
