"""The real server, which also measures how long its event loop is blocked.

`GET /test/loop` tells the longest callback so far, in milliseconds of the processor: what a busy machine
gives to other programs, or Python to another thread, does not count. Calls that wait are found by blockbuster
(`tests/app/test_blocking.py`).
"""

import asyncio
import gc
import socket
import time

from maniple.cli.process import pause_garbage_collection

with pause_garbage_collection():  # as the real one does
    import uvicorn
    from fastapi import FastAPI

    from maniple.api import create_app
    from maniple.config import load_settings

LONGEST = {"ms": 0.0, "callback": ""}
COLLECTING = {"begun": 0.0, "seconds": 0.0}
"""CPU time of garbage collections, which interrupt whatever runs; they depend on the load."""


def watch_callbacks() -> None:
    """Measure every callback of the event loop from now on."""
    run = asyncio.events.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        started, collected = time.thread_time(), COLLECTING["seconds"]
        try:
            run(handle)
        finally:
            took = (time.thread_time() - started - COLLECTING["seconds"] + collected) * 1000
            if took > LONGEST["ms"]:
                LONGEST.update(ms=took, callback=repr(handle)[:300])

    asyncio.events.Handle._run = measured  # type: ignore[method-assign]
    gc.callbacks.append(_measure_collection)


def _measure_collection(phase: str, _: dict[str, int]) -> None:
    if phase == "start":
        COLLECTING["begun"] = time.thread_time()
    else:
        COLLECTING["seconds"] += time.thread_time() - COLLECTING["begun"]


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
