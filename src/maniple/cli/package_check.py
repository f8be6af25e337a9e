"""The check of the packages that sandboxed Python has, which also prepares them."""

import asyncio

from maniple.cli.findings import Finding
from maniple.config import Settings
from maniple.errors import SandboxError
from maniple.llms.embedded import Progress
from maniple.sandbox import Unavailable, open_sandbox
from maniple.sandbox.environment import Environment, find_environment
from maniple.sandbox.inspection import find_broken
from maniple.sandbox.installation import install
from maniple.sandbox.programs import find_programs

_NAME = "packages"
# Importing all of them on a busy machine.
_IMPORT_SECONDS = 120.0
_WITHOUT = "Sandboxed code has Python's own library only."


async def check_packages(settings: Settings, progress: Progress, *, build: bool) -> Finding:
    """Try every package of the sandbox inside it; with `build` they are installed first, if need be."""
    environment = await asyncio.to_thread(find_environment, settings.sandbox, settings.cache_dir)
    if environment is None:
        return Finding(_NAME, "ok", f"none are prepared here: {_why_none(settings)}")
    if not environment.stands:
        if not build:
            return Finding(_NAME, "warning", f"not prepared. {_WITHOUT}", "maniple doctor prepares them.")
        if settings.sandbox.backend == "bubblewrap":
            programs = await asyncio.to_thread(find_programs, settings.sandbox.python)
            if isinstance(programs, Unavailable):
                return Finding(_NAME, "ok", "not prepared, for there is no sandbox")
        try:
            await install(environment, lambda words: progress.step(f"the sandbox's packages: {words}"))
        except SandboxError as error:
            return Finding(_NAME, "warning", f"{error} {_WITHOUT}")
    return await _try(environment, settings)


def _why_none(settings: Settings) -> str:
    backend = settings.sandbox.backend
    if backend not in ("bubblewrap", "unsafe-local"):
        return f"sandbox.backend is {backend}"
    return f"those of {settings.sandbox.python} are used" if settings.sandbox.python else "there is no Python"


async def _try(environment: Environment, settings: Settings) -> Finding:
    installed = ", ".join(environment.installed())
    patient = settings.sandbox.model_copy(update={"timeout_seconds": _IMPORT_SECONDS, "network": "none"})
    async with open_sandbox(patient, cache_dir=settings.cache_dir) as sandbox:
        if isinstance(sandbox, Unavailable):
            return Finding(_NAME, "ok", f"{installed}; not tried, for there is no sandbox")
        try:
            broken = await find_broken(environment, sandbox)
        except SandboxError as error:
            return Finding(_NAME, "warning", str(error), _remedy(environment))
    if broken:
        words = "; ".join(f"{name} cannot be imported: {why}" for name, why in broken.items())
        return Finding(_NAME, "warning", words, _remedy(environment))
    return Finding(_NAME, "ok", f"{installed}, in {environment.path}")


def _remedy(environment: Environment) -> str:
    return f"Delete {environment.path} and run maniple doctor again; look at sandbox.memory_mb and packages."
