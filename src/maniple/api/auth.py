"""Who asks: API keys, and the door that nobody passes without one."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from maniple.api.refusals import refuse_run
from maniple.config import ServerSettings
from maniple.errors import ManipleError
from maniple.store import Store

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/docs", "/openapi.json"})
OPEN_FOLDER = "/assets/"
"""What is answered without a key.

An orchestrator asks `/healthz` without one. The documentation says how to get in, the page (with what it
loads, in `OPEN_FOLDER`) asks for a key; both hold nothing of this installation, and a browser that opens them
cannot send a key.
"""
LONGEST_SECRET = 200
_NEEDED = "Send an API key as X-API-Key, or as Authorization: Bearer. `maniple keys add NAME` makes one."
_UNKNOWN = "This API key is not known here, or was revoked."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `owner` is the id of the API key, "" where none is needed."""

    owner: str = ""


class KeyGate:
    """ASGI middleware: where API keys were ever made, only who has a valid one comes in.

    Before anything more is read. Keys that were revoked still close the door: who takes the last one away
    wants nobody in, not everybody.
    """

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app = app
        self._is_open = server.is_loopback or server.insecure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secret = secret_of(Headers(scope=scope))
        try:
            caller = await self._caller(scope["app"].state.service.store, secret)
        except ManipleError as error:
            await (await refuse_run(Request(scope), error))(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        if caller is None and not _is_open_to_all(scope["path"]):
            await _refusal(secret)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _caller(self, store: Store, secret: str) -> Caller | None:
        key = await store.keys.find(secret) if 0 < len(secret) <= LONGEST_SECRET else None
        if key is not None:
            return Caller(key.key_id)
        # Without keys there is no login: what a proxy in front puts into the header is for others.
        return Caller() if self._is_open and not await store.keys.list() else None


def secret_of(headers: Headers) -> str:
    """Return the API key that a request shows, "" without one."""
    if secret := headers.get("x-api-key", "").strip():
        return secret
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.casefold() == "bearer" else ""


async def caller_of(request: Request) -> Caller:
    """Return who asks, as the gate found it."""
    # Asynchronous, although it waits for nothing: FastAPI would send any other through a thread.
    return request.state.caller


CallerOf = Annotated[Caller, Depends(caller_of)]


def _is_open_to_all(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _refusal(secret: str) -> JSONResponse:
    code, words = ("key_unknown", _UNKNOWN) if secret else ("key_needed", _NEEDED)
    challenge = 'Bearer realm="maniple"' + (', error="invalid_token"' if secret else "")
    return JSONResponse(
        {"detail": words, "code": code}, status_code=401, headers={"www-authenticate": challenge}
    )
