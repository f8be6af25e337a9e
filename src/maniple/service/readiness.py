"""The readiness of the service's parts, with the reasons for those that are not ready."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from pydantic import BaseModel, Field

from maniple.agents.team_models import ModelUse
from maniple.app import Runtime
from maniple.capabilities.mcp import obstacles_of
from maniple.errors import StoreError
from maniple.redaction import Redactor
from maniple.sandbox.package_environment import find_environment
from maniple.search import find_gaps, find_outage
from maniple.store import Store
from maniple.types import Worker

RECHECK_SECONDS = 10.0
_TIMEOUT_SECONDS = 2.0
_UNPREPARED = "The sandbox's packages are not prepared. Run `maniple doctor`, then start the server again."


class PartReadiness(BaseModel):
    """Whether one part is ready, and the reason if it is not, or what it lacks.

    `code` is the error code that requests are refused with meanwhile, where there is one.
    """

    ready: bool
    why: str = ""
    code: str = Field(default="", exclude_if=lambda code: not code)


class ModelReadiness(PartReadiness):
    """The same for all models, and what real calls have shown of their endpoints."""

    learned: dict[str, dict[str, bool]] = Field(default={}, exclude_if=lambda learned: not learned)
    """By the name of a model and its endpoint, which features work there."""


class Readiness(BaseModel):
    """Whether runs can be answered, and the readiness of each part.

    `ready` needs the store and the models that every run uses. `model` is about all models, `mcp` about each
    MCP server by name.
    """

    ready: bool
    store: PartReadiness
    model: ModelReadiness
    search: PartReadiness
    sandbox: PartReadiness
    packages: PartReadiness
    browser: PartReadiness
    files: PartReadiness
    mcp: dict[str, PartReadiness]


@dataclass(frozen=True, slots=True)
class Reached:
    """Whether every role reaches a model; `suffices` is about the roles that every run needs."""

    model: PartReadiness
    suffices: bool


class ModelReach:
    """Checks at most every ten seconds whether the models' endpoints answer; it sends no keys."""

    def __init__(self, client: httpx.AsyncClient, uses: Sequence[ModelUse]) -> None:
        self._client = client
        self._uses = uses
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._answer = Reached(PartReadiness(ready=False), suffices=False)

    async def reached(self) -> Reached:
        """Return the readiness that follows from the endpoints' last answers."""
        async with self._asking:
            if time.monotonic() - self._asked_at > RECHECK_SECONDS:
                self._answer = await self._ask_all()
                self._asked_at = time.monotonic()
            return self._answer

    async def _ask_all(self) -> Reached:
        urls = [*dict.fromkeys(url for use in self._uses for url in use.urls)]
        faults = dict(zip(urls, await asyncio.gather(*map(self._fault, urls)), strict=True))
        # One fallback that answers is enough; otherwise the first endpoint gives the reason.
        lacking = [use for use in self._uses if all(faults[url] for url in use.urls)]
        roles: dict[str, list[str]] = {}
        for use in lacking:
            roles.setdefault(faults[use.urls[0]], []).append(use.role)
        why = " ".join(f"The endpoint of {', '.join(names)} {fault}" for fault, names in roles.items())
        return Reached(PartReadiness(ready=not lacking, why=why), not any(use.vital for use in lacking))

    async def _fault(self, url: str) -> str:
        """Return what is wrong with an endpoint, "" when it answers."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                # The status is enough: a body may be of any size.
                async with self._client.stream("GET", f"{url.rstrip('/')}/models") as response:
                    status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            return f"is unreachable: {why}. See `maniple doctor`."
        return f"answers HTTP {status}." if status >= 500 else ""


@asynccontextmanager
async def open_reach(runtime: Runtime) -> AsyncGenerator[ModelReach | None]:
    """Yield the check of the models' endpoints; None for the embedded model, which runs in this process."""
    if runtime.answering.embedded:
        yield None
        return
    # Reading the certificates would block the event loop for too long.
    client = await asyncio.to_thread(httpx.AsyncClient, timeout=_TIMEOUT_SECONDS)
    async with client:
        yield ModelReach(client, runtime.uses)


async def readiness(
    runtime: Runtime, store: Store, reach: ModelReach | None, redactor: Redactor
) -> Readiness:
    """Return the readiness of each part. Runs need the store and the models; the rest is optional."""
    stored, reached, search = await asyncio.gather(
        _store(store), reach.reached() if reach else _embedded(), _search(runtime, redactor)
    )
    return Readiness(
        ready=stored.ready and reached.suffices,
        store=stored,
        model=ModelReadiness(**reached.model.model_dump(), learned=runtime.models.learned()),
        search=search,
        sandbox=_sandbox(runtime),
        packages=await asyncio.to_thread(_packages, runtime),
        browser=_equipped(runtime.missing, "browser"),
        files=_equipped(runtime.missing, "file_manager"),
        mcp={
            name: PartReadiness(ready=not why, why=redactor.text(why))
            for name, why in obstacles_of(runtime.settings.mcp, runtime.mcp).items()
        },
    )


async def _embedded() -> Reached:
    return Reached(PartReadiness(ready=True), suffices=True)


async def _store(store: Store) -> PartReadiness:
    try:
        warning = await store.probe()
    except StoreError as error:
        return PartReadiness(ready=False, why=str(error), code=error.code)
    return PartReadiness(ready=True, why=warning)


async def _search(runtime: Runtime, redactor: Redactor) -> PartReadiness:
    """Whether a search may be answered, and what it cannot find.

    A provider that was reached is checked again after a minute.
    """
    outage = "" if runtime.search is None else await find_outage(runtime.search)
    if outage:
        return PartReadiness(ready=False, why=outage)
    equipped = _equipped(runtime.missing, "researcher")
    if runtime.search is None or not equipped.ready:
        return equipped
    return PartReadiness(ready=True, why=redactor.text((await find_gaps(runtime.search)).text))


def _sandbox(runtime: Runtime) -> PartReadiness:
    equipped = _equipped(runtime.missing, "coder")
    return PartReadiness(ready=True, why=runtime.warning) if runtime.warning else equipped


def _packages(runtime: Runtime) -> PartReadiness:
    """Whether sandboxed Python has the packages that it should have. Blocks on disk."""
    equipped = _equipped(runtime.missing, "coder")
    settings = runtime.settings
    environment = find_environment(settings.sandbox, settings.cache_dir) if equipped.ready else None
    return (
        equipped
        if environment is None or environment.is_ready
        else PartReadiness(ready=False, why=_UNPREPARED)
    )


def _equipped(missing: Mapping[Worker, str], worker: Worker) -> PartReadiness:
    why = missing.get(worker, "")
    return PartReadiness(ready=not why, why=why)
