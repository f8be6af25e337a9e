"""Protection of the service's origin in browsers: which pages may change something, and security headers."""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # Of a response that is no page: in a browser's tab it loads and runs nothing.
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
"""The headers of every response that does not set them itself."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_PAGE = frozenset({"same-origin", "none"})
_FOREIGN = (
    "This web page is not allowed to change anything here. "
    "If it is yours, add its origin to server.cors_origins."
)


class OriginGate:
    """ASGI middleware: only web pages of the service and of `allowed_origins` may change something.

    It checks every method but GET, HEAD and OPTIONS on every path, and every WebSocket. A browser sends
    `Sec-Fetch-Site` to secure addresses and this machine, and `Origin` with every such request; other clients
    send neither and pass.
    Source: https://developer.mozilla.org/en-US/docs/Web/Security/Attacks/CSRF#fetch_metadata
    """

    def __init__(self, app: ASGIApp, allowed_origins: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _changes_nothing(scope) or self._passes(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await JSONResponse({"detail": _FOREIGN, "code": "forbidden"}, status_code=403)(scope, receive, send)

    def _passes(self, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and ("*" in self._allowed or origin in self._allowed):
            return True
        if site is not None:
            return site in _OWN_PAGE
        return origin is None or _is_host(origin, headers.get("host", ""))


def _changes_nothing(scope: Scope) -> bool:
    if scope["type"] == "http":
        return scope["method"] in _SAFE_METHODS
    return scope["type"] != "websocket"


def _is_host(origin: str, host: str) -> bool:
    # The scheme is not compared: a reverse proxy may end TLS.
    try:
        return bool(host) and urlsplit(origin).netloc.casefold() == host.casefold()
    except ValueError:
        return False


class SecurityHeaders:
    """ASGI middleware that adds `SECURITY_HEADERS` to each response without them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"].endswith("http.response.start"):  # also of a refused WebSocket
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        is_guarded = scope["type"] in ("http", "websocket")
        await self._app(scope, receive, send_guarded if is_guarded else send)
