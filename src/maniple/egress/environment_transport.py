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


class ProxyFailed(Exception):
    """The proxy that the environment names cannot be reached, or does not reach the server.

    Each raised one is a `ConnectError` of the client's library as well.
    """

    proxy: str
    """The variable and the host."""
    reason: str


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
        try:
            return await transport.handle_async_request(request)
        except (library.ConnectError, library.ConnectTimeout, library.ProxyError) as error:
            if refused := describe_certificate_failure(error):
                raise library.ConnectError(refused, request=request) from error
            if transport is self.direct or any(isinstance(one, ssl.SSLError) for one in causes_of(error)):
                raise
            proxy = self._proxies.describe(request.url.scheme)
            raise _proxy_failure(library)(proxy, error, request) from error

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


@cache
def _proxy_failure(library: ModuleType) -> type[Any]:
    class ProxyConnectError(ProxyFailed, library.ConnectError):
        def __init__(self, proxy: str, error: Exception, request: Any) -> None:
            self.proxy, self.reason = proxy, str(error) or type(error).__name__
            message = (
                f"the proxy that {proxy} names fails ({self.reason}). "
                "Correct or unset the variable, or name the host in NO_PROXY"
            )
            library.ConnectError.__init__(self, message, request=request)

    return ProxyConnectError
