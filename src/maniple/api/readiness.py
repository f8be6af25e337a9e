"""Which parts of the service are ready, and why the others are not."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from maniple.api.schemas import Readiness, Ready
from maniple.errors import StoreError
from maniple.runtime import Runtime
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.store import Store
from maniple.types import Worker

ASK_AGAIN_SECONDS = 10.0
_TIMEOUT_SECONDS = 2.0


class ModelReach:
    """Whether the model's endpoint answers at all; asked at most every ten seconds, without its key."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._answer = Ready(ready=False)

    async def ready(self) -> Ready:
        """Return what the endpoint's last answer says."""
        async with self._asking:
            if time.monotonic() - self._asked_at > ASK_AGAIN_SECONDS:
                self._answer = await self._ask()
                self._asked_at = time.monotonic()
            return self._answer

    async def _ask(self) -> Ready:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                response = await self._client.get(f"{self._url.rstrip('/')}/models")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            return Ready(
                ready=False, why=f"The model's endpoint is unreachable: {why}. See `maniple doctor`."
            )
        if response.status_code >= 500:
            return Ready(ready=False, why=f"The model's endpoint answers HTTP {response.status_code}.")
        return Ready(ready=True)


@asynccontextmanager
async def open_reach(runtime: Runtime) -> AsyncIterator[ModelReach | None]:
    """Yield what asks the model's endpoint; None for the embedded model, which lives and dies with us."""
    if runtime.answering.embedded:
        yield None
        return
    # Reading the certificates takes longer than the event loop may stand still.
    client = await asyncio.to_thread(httpx.AsyncClient, timeout=_TIMEOUT_SECONDS)
    async with client:
        yield ModelReach(client, runtime.answering.url)


async def readiness(runtime: Runtime, store: Store, reach: ModelReach | None) -> Readiness:
    """Return how every part stands. Without store or model no run is answered; the rest may be absent."""
    kept, model = await asyncio.gather(_store(store), reach.ready() if reach else _embedded())
    return Readiness(
        ready=kept.ready and model.ready,
        store=kept,
        model=model,
        search=_equipped(runtime.missing, "researcher"),
        sandbox=_sandbox(runtime),
        browser=_equipped(runtime.missing, "browser"),
        files=_equipped(runtime.missing, "file_manager"),
    )


async def _embedded() -> Ready:
    return Ready(ready=True)


async def _store(store: Store) -> Ready:
    try:
        await store.try_out()
    except StoreError as error:
        return Ready(ready=False, why=str(error))
    return Ready(ready=True)


def _sandbox(runtime: Runtime) -> Ready:
    equipped = _equipped(runtime.missing, "coder")
    unsafe = equipped.ready and runtime.settings.sandbox.backend == "unsafe-local"
    return Ready(ready=True, why=UNSAFE) if unsafe else equipped


def _equipped(missing: Mapping[Worker, str], worker: Worker) -> Ready:
    why = missing.get(worker, "")
    return Ready(ready=not why, why=why)
