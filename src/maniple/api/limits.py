"""Refuse bodies that are too large, before they fill memory or the disk."""

import re

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maniple.errors import ManipleError

_UPLOAD = re.compile(r"/api/threads/[^/]+/files")


class TooLarge(ManipleError):
    """A body turned out to be larger than it may be."""

    code = "too_large"


class BodyLimit:
    """ASGI middleware: a request body over `max_bytes` is answered with 413.

    An upload may have `max_upload_bytes`; it goes through as it comes, and whoever reads it hears `TooLarge`.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_upload_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = scope["method"] == "POST" and _UPLOAD.fullmatch(scope["path"]) is not None
        limit = self._max_upload_bytes if is_upload else self._max_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            await self._refuse(is_upload, scope, receive, send)
        elif is_upload:
            await self._app(scope, self._counted(receive), send)
        else:
            await self._read(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, size = [], 0
        while True:
            message = await receive()
            body.append(message)
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                await self._refuse(False, scope, receive, send)
                return
            if not message.get("more_body"):
                break
        await self._app(scope, _replayed(body, receive), send)

    async def _refuse(self, is_upload: bool, scope: Scope, receive: Receive, send: Send) -> None:
        content = {"detail": self._words(is_upload), "code": TooLarge.code}
        await JSONResponse(content, status_code=413)(scope, receive, send)

    def _words(self, is_upload: bool) -> str:
        limit, name = (
            (self._max_upload_bytes, "max_upload_bytes") if is_upload else (self._max_bytes, "max_body_bytes")
        )
        return f"The request body is larger than {limit} bytes (server.{name})."

    def _counted(self, receive: Receive) -> Receive:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_upload_bytes:
                raise TooLarge(self._words(True))
            return message

        return counted


def _replayed(body: list[Message], receive: Receive) -> Receive:
    waiting = iter(body)

    async def replay() -> Message:
        return next(waiting, None) or await receive()

    return replay
