"""Authentication: the middleware that checks API keys, and the check of the keys of open streams."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from maniple.api.error_responses import answer_error
from maniple.config import ServerSettings
from maniple.errors import ManipleError, StoreError
from maniple.store import ApiKeyTable, EventRecord, Store

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/docs", "/openapi.json"})
OPEN_FOLDER = "/assets/"
"""The paths that need no key.

Orchestrators call `/healthz` without one. The documentation and the page (with its assets in `OPEN_FOLDER`)
contain no data of this installation, and a browser that opens them cannot send a key.
"""
SECRET_CHARACTERS = 200
_KEY_NEEDED = "Send an API key as X-API-Key, or as Authorization: Bearer. `maniple keys add NAME` makes one."
_KEY_UNKNOWN = "This API key is not known here, or was revoked."


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: `owner` is the id of the API key, "" where no key is needed."""

    owner: str = ""


class KeyGate:
    """ASGI middleware: once an API key has been created, only requests with a valid key pass.

    It checks the key before it reads the body. Revoked keys also count: revoking the last key closes the
    service instead of opening it.
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
            await (await answer_error(Request(scope), error))(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        if caller is None and not _is_open_to_all(scope["path"]):
            await _refusal(secret)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _caller(self, store: Store, secret: str) -> Caller | None:
        key = await store.keys.find(secret) if 0 < len(secret) <= SECRET_CHARACTERS else None
        if key is not None:
            return Caller(key.key_id)
        # Without keys there is no authentication: credentials in the header are for a reverse proxy.
        return Caller() if self._is_open and not await store.keys.list() else None


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


def keyed_router(tag: str) -> APIRouter:
    """Return a router whose routes require a key if any key exists."""
    return APIRouter(tags=[tag], dependencies=[Security(_KEY), Security(_BEARER)])


CHECK_SECONDS = 1.0


class KeyRevoked(ManipleError):
    """The key of an open stream was revoked."""

    code = "key_revoked"


class KeyWatch:
    """Checks the keys of open streams in the store, each at most once a second."""

    def __init__(self, keys: ApiKeyTable) -> None:
        self._keys = keys
        self._checked: dict[str, tuple[float, bool]] = {}

    async def pages(
        self, owner: str, source: AsyncIterator[Sequence[EventRecord]]
    ) -> AsyncGenerator[Sequence[EventRecord]]:
        """Yield the pages of `source`; raises `KeyRevoked` within two seconds of the key's revocation."""
        if not owner:
            async for page in source:
                yield page
            return
        revoked = asyncio.create_task(self._revoked(owner))
        try:
            while page := await _next(source, revoked):
                yield page
        finally:
            revoked.cancel()

    async def _revoked(self, key_id: str) -> None:
        while True:
            if await self._is_revoked(key_id):
                return
            await asyncio.sleep(CHECK_SECONDS)

    async def _is_revoked(self, key_id: str) -> bool:
        asked_at, revoked = self._checked.get(key_id, (float("-inf"), False))
        if not revoked and time.monotonic() - asked_at >= CHECK_SECONDS:
            # Stored first, so that the key's other streams do not query as well.
            self._checked[key_id] = (time.monotonic(), False)
            with suppress(StoreError):  # checked again in a second
                key = await self._keys.get(key_id)
                revoked = key is None or key.revoked_at is not None
                self._checked[key_id] = (time.monotonic(), revoked)
        return revoked


async def _next(
    source: AsyncIterator[Sequence[EventRecord]], revoked: asyncio.Task[None]
) -> Sequence[EventRecord] | None:
    page = asyncio.ensure_future(anext(source, None))
    try:
        await asyncio.wait((page, revoked), return_when=asyncio.FIRST_COMPLETED)
        if revoked.done():
            raise KeyRevoked("The API key was revoked. The run continues.")
        return await page
    finally:
        page.cancel()
        await asyncio.wait((page,))
        if not page.cancelled():
            page.exception()  # Otherwise asyncio warns that the exception was not retrieved.
