"""Refuse bodies that are too large, before they fill memory."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """ASGI middleware: a request body over `max_bytes` is answered with 413."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        body, size = [], 0
        while True:
            message = await receive()
            body.append(message)
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                await self._refuse(scope, receive, send)
                return
            if not message.get("more_body"):
                break
        await self._app(scope, _replayed(body, receive), send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"The request body is larger than {self._max_bytes} bytes (server.max_body_bytes)."
        await JSONResponse({"detail": detail, "code": "too_large"}, status_code=413)(scope, receive, send)


def _replayed(body: list[Message], receive: Receive) -> Receive:
    waiting = iter(body)

    async def replay() -> Message:
        return next(waiting, None) or await receive()

    return replay
