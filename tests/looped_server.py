"""The real server, which also measures how long its event loop is blocked.

`GET /test/loop` tells the longest callback so far, in milliseconds: from its start to its end, less the time
in which it was ready to run and a busy machine gave the processor to others (`man 5 proc`, schedstat).
"""

import asyncio
import socket
import time
from pathlib import Path

from maniple.cli.process import pause_garbage_collection

with pause_garbage_collection():  # as the real one does
    import uvicorn
    from fastapi import FastAPI

    from maniple.api import create_app
    from maniple.config import load_settings

LONGEST = {"ms": 0.0, "callback": ""}


def _waited_seconds() -> float:
    return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9


def watch_callbacks() -> None:
    """Measure every callback of the event loop from now on."""
    run = asyncio.events.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        started, waited = time.perf_counter(), _waited_seconds()
        try:
            run(handle)
        finally:
            took = (time.perf_counter() - started - (_waited_seconds() - waited)) * 1000
            if took > LONGEST["ms"]:
                LONGEST.update(ms=took, callback=repr(handle)[:300])

    asyncio.events.Handle._run = measured  # type: ignore[method-assign]


def add_measures(app: FastAPI) -> None:
    @app.get("/test/loop")
    async def loop() -> dict[str, float | str]:
        return LONGEST

    @app.post("/test/loop")
    async def reset() -> None:
        LONGEST.update(ms=0.0, callback="")


def main() -> None:
    settings = load_settings()
    app = create_app(settings)
    add_measures(app)
    watch_callbacks()
    listener = socket.create_server(("127.0.0.1", settings.server.port))
    config = uvicorn.Config(app, log_level="warning", loop="asyncio")
    print(f"Serving on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
