"""Authentication: the middleware that checks API keys, and the check of the keys of open streams."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from maniple.api.error_responses import respond_to_error
from maniple.api.not_used import QueryNamingRoute
from maniple.config import ServerSettings
from maniple.config.values import is_loopback
from maniple.errors import ManipleError
from maniple.service.callers import Caller
from maniple.store import Store

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/docs", "/openapi.json"})
OPEN_FOLDER = "/assets/"
"""The paths that need no key.

Orchestrators call `/healthz` without one. The documentation and the page (with its assets in `OPEN_FOLDER`)
contain no data of this installation, and a browser that opens them cannot send a key.
"""
SECRET_CHARACTERS = 200
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_KEY_NEEDED = "Send an API key as X-API-Key, or as Authorization: Bearer. `maniple keys add NAME` makes one."
_KEY_UNKNOWN = "This API key is not known here, or was revoked."


class KeyGate:
    """ASGI middleware: once an API key has been created, only requests with a valid key pass.

    It checks the key before it reads the body, and that of a WebSocket before it opens; `find_caller` of its
    state does so again for each of its messages. Revoked keys also count: revoking the last key closes the
    service instead of opening it.
    """

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app = app
        self._is_open = server.is_loopback or server.insecure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        secret = secret_of(Headers(scope=scope))
        try:
            caller = await self._caller(scope, secret)
        except ManipleError as error:
            if not _is_open_to_all(scope["path"]):
                await respond_to_error(error)(scope, receive, send)
                return
            caller = None  # a process whose store is away is alive: who watches it must not end it
        state = scope.setdefault("state", {})
        state["caller"], state["find_caller"] = caller, partial(self._caller, scope, secret)
        if caller is None and not _is_open_to_all(scope["path"]):
            await _refusal(secret)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, secret: str) -> Caller | None:
        store: Store = scope["app"].state.service.store
        key = await store.keys.find(secret) if 0 < len(secret) <= SECRET_CHARACTERS else None
        if key is not None:
            return Caller(key.key_id, key.limits.admin)
        # Without keys there is no authentication: credentials in the header are for a reverse proxy.
        if not self._is_open or await store.keys.list():
            return None
        return Caller(is_admin=_is_of_this_machine(scope))


def _is_of_this_machine(scope: Scope) -> bool:
    """Return whether a request comes from this machine, and not through a proxy on it."""
    host, _ = scope.get("client") or ("", 0)
    headers = Headers(scope=scope)
    return is_loopback(host) and not any(name in headers for name in _FORWARDED)


def secret_of(headers: Headers) -> str:
    """Return the API key of a request, "" without one."""
    if secret := headers.get("x-api-key", "").strip():
        return secret
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.casefold() == "bearer" else ""


async def caller_of(request: Request) -> Caller:
    """Return the caller that the middleware found."""
    # Asynchronous without waiting: FastAPI runs other dependencies in a thread.
    return request.state.caller


CallerOf = Annotated[Caller, Depends(caller_of)]


def _is_open_to_all(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _refusal(secret: str) -> JSONResponse:
    code, message = ("key_unknown", _KEY_UNKNOWN) if secret else ("key_needed", _KEY_NEEDED)
    challenge = 'Bearer realm="maniple"' + (', error="invalid_token"' if secret else "")
    return JSONResponse(
        {"detail": message, "code": code}, status_code=401, headers={"www-authenticate": challenge}
    )


_KEY = APIKeyHeader(name="X-API-Key", scheme_name="ApiKey", auto_error=False)
_BEARER = HTTPBearer(scheme_name="Bearer", auto_error=False)


def keyed_router(tag: str, *, is_protocol: bool = False) -> APIRouter:
    """Return a router whose routes require a key if any key exists.

    The id of an operation is the name of its function; that of another protocol begins with its tag.
    """
    prefix = tag.replace("-", "_") + "_" if is_protocol else ""
    return APIRouter(
        route_class=QueryNamingRoute if is_protocol else APIRoute,
        tags=[tag],
        dependencies=[Security(_KEY), Security(_BEARER)],
        generate_unique_id_function=lambda route: prefix + route.name,
    )
