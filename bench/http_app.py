"""An ASGI application of the standard library alone, for `bench.http_servers`.

`python -m bench.http_app PORT` serves it as maniple serves, with deadlines of two seconds.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

EVENTS = 250
PAUSE_SECONDS = 0.01
_EVENT = b"id: 17\r\nevent: message\r\ndata: " + b"x" * 120 + b"\r\n\r\n"


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]
) -> None:
    """Stream events at `/stream`; elsewhere read the body and answer with nothing."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/stream":
        for _ in range(EVENTS):
            await send({"type": "http.response.body", "body": _EVENT, "more_body": True})
            await asyncio.sleep(PAUSE_SECONDS)
    await send({"type": "http.response.body", "body": b""})


def main(port: int) -> None:
    """Serve with maniple's limits."""
    import uvicorn

    from maniple.cli.services import bind_address, uvicorn_config
    from maniple.config import ServerSettings

    settings = ServerSettings(port=port, header_seconds=2, body_seconds=2)
    with bind_address(settings) as listener:
        uvicorn.Server(uvicorn_config(app, settings)).run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
