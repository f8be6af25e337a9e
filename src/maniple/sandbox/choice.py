"""The backends besides bubblewrap: which setting stands for which, and what each must show at the start."""

import asyncio
import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import Backend
from maniple.sandbox.environment import Environment, usable_environment
from maniple.sandbox.workspaces import Workspaces
from maniple.types import Unavailable, installing

_SETTINGS = "see `sandbox` in conf.yaml and docs/sandbox.md; sandbox.backend chooses another."
_HELLO = "print(6 * 7)"


@dataclass(frozen=True, slots=True)
class Choice:
    """How a backend is opened, which may raise `SandboxError`, `FileError` or `OSError`.

    `extra` installs the package of its SDK; `client` is the name in it that loads the rest.
    """

    open: Callable[[SandboxSettings], AbstractAsyncContextManager[Backend]]
    package: str = ""
    client: str = ""
    extra: str = ""

    def load(self) -> None:
        """Import the SDK. Blocks for up to two seconds."""
        if self.package:
            getattr(importlib.import_module(self.package), self.client)


@asynccontextmanager
async def open_chosen(
    settings: SandboxSettings, cache_dir: Path | None = None
) -> AsyncIterator[Backend | Unavailable]:
    """Yield the backend that the settings choose, one of `CHOICES`, once it has shown that it runs code.

    Or why there is none: nothing takes its place. `cache_dir` is where the prepared packages are, for the one
    backend that can use them. Costs a session or two.
    """
    choice = CHOICES[settings.backend]
    if obstacle := _obstacle(settings, choice):
        yield obstacle
        return
    await asyncio.to_thread(choice.load)
    async with AsyncExitStack() as stack:
        found: Backend | Unavailable
        try:
            environment = await asyncio.to_thread(_environment, settings, cache_dir)
            fitted = stack.enter_context(_fitted(settings, environment))
            found = await stack.enter_async_context(choice.open(fitted))
        except (SandboxError, FileError, OSError) as error:
            found = Unavailable(str(error), _SETTINGS)
        yield found


def _environment(settings: SandboxSettings, cache_dir: Path | None) -> Environment | None:
    return None if cache_dir is None else usable_environment(settings, cache_dir)


@contextmanager
def _fitted(settings: SandboxSettings, environment: Environment | None) -> Iterator[SandboxSettings]:
    """The settings with the Python that has the prepared packages, where they stand."""
    if environment is None:
        yield settings
        return
    with environment.held() as stands:
        yield settings.model_copy(update={"python": environment.python}) if stands else settings


def _obstacle(settings: SandboxSettings, choice: Choice) -> Unavailable | None:
    name = settings.backend
    if choice.package and importlib.util.find_spec(choice.package) is None:
        reason = f"sandbox.backend is {name}, whose package {choice.package} is not installed."
        return Unavailable(reason, installing(choice.extra))
    for key, variable, needs in (
        ("e2b_api_key", "E2B_API_KEY", "e2b"),
        ("daytona_api_key", "DAYTONA_API_KEY", "daytona"),
    ):
        if name == needs and getattr(settings, key) is None:
            return Unavailable(f"sandbox.backend is {name}, and there is no key.", f"set {variable} in .env")
    if settings.network == "allowlist":
        return _unreachable_hosts(settings)
    return None


def _unreachable_hosts(settings: SandboxSettings) -> Unavailable | None:
    """Why the hosts that are named cannot be the only ones that code reaches."""
    remedy = "set `sandbox.network: none`, or `sandbox.backend: bubblewrap`, which can."
    if settings.backend in ("docker", "unsafe-local"):
        return Unavailable(
            f"sandbox.backend {settings.backend} cannot let code reach only some hosts.", remedy
        )
    if ports := [host for host in settings.allow_hosts if ":" in host]:
        return Unavailable(f"{settings.backend} cannot tell the ports of a host apart ({ports[0]}).", remedy)
    return None


async def _greet(backend: Backend) -> None:
    """Run one line in a new session; raises `SandboxError` unless its answer comes back."""
    with TemporaryDirectory(prefix="maniple-hello-") as folder:
        session = await backend.start(Workspaces(Path(folder, "workspaces")).open("hello"))
        try:
            completed = await session.run_python(_HELLO)
        finally:
            await session.stop()
    if completed.stdout.strip() != "42":
        raise SandboxError(f"The sandbox did not run a line of Python: {completed.text()}")


@asynccontextmanager
async def _open_local(settings: SandboxSettings) -> AsyncIterator[Backend]:
    from maniple.sandbox.backends.local import LocalBackend

    backend = LocalBackend(settings)
    await _greet(backend)
    yield backend


@asynccontextmanager
async def _open_docker(settings: SandboxSettings) -> AsyncIterator[Backend]:
    from maniple.sandbox.backends.container_trial import check_container
    from maniple.sandbox.backends.docker import open_docker

    async with open_docker(settings) as backend:
        await check_container(backend, settings)
        yield backend


@asynccontextmanager
async def _open_e2b(settings: SandboxSettings) -> AsyncIterator[Backend]:
    from maniple.sandbox.backends.e2b import E2BBackend

    backend = E2BBackend(settings)
    await _greet(backend)
    yield backend


@asynccontextmanager
async def _open_daytona(settings: SandboxSettings) -> AsyncIterator[Backend]:
    from maniple.sandbox.backends.daytona import open_daytona

    async with open_daytona(settings) as backend:
        await _greet(backend)
        yield backend


CHOICES = {
    "unsafe-local": Choice(_open_local),
    "docker": Choice(_open_docker, "aiodocker", "Docker", extra="docker"),
    "e2b": Choice(_open_e2b, "e2b_code_interpreter", "AsyncSandbox", extra="e2b"),
    "daytona": Choice(_open_daytona, "daytona", "AsyncDaytona", extra="daytona"),
}
