"""What a sandbox is fitted with beside Python and a shell: prepared packages, and a way to the network."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import Exit
from maniple.sandbox.environment import INNER_PATH, Environment, usable_environment
from maniple.sandbox.network import CERTIFICATES, WayOut, open_way_out

ADDED_PACKAGES = "/tmp/packages"
"""Where pip puts what code installs itself: for one session, and not among the files that are kept."""
# In the private /tmp, because matplotlib wants to be able to write beside its list.
_MATPLOTLIB = "/tmp/matplotlib"


@dataclass(frozen=True, slots=True)
class Fittings:
    """`environment` is one that stands."""

    environment: Environment | None = None
    way_out: WayOut | None = None

    @property
    def python(self) -> str:
        """The interpreter inside a sandbox that is made of mounts; "" for the system's."""
        return f"{INNER_PATH}/bin/python" if self.environment else ""

    def shown(self) -> Iterator[tuple[str, str]]:
        """(path on the host, path inside) of what is to be seen there, read-only, by every session."""
        if self.environment is not None:
            yield str(self.environment.path), INNER_PATH
            if fonts := self.environment.font_list():
                yield str(fonts), f"{_MATPLOTLIB}/{fonts.name}"
        if self.way_out is not None:
            yield from ((path, path) for path in CERTIFICATES if Path(path).is_dir())

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment inside, which has PATH and PYTHONPATH, with what belongs to these."""
        found = {**given, "MPLCONFIGDIR": _MATPLOTLIB}
        if self.environment is not None:
            found["PATH"] = f"{INNER_PATH}/bin:{given['PATH']}"
        if self.way_out is not None:
            found |= self.way_out.variables()
            found |= {"PIP_TARGET": ADDED_PACKAGES, "PYTHONPATH": f"{given['PYTHONPATH']}:{ADDED_PACKAGES}"}
            # Its cache would lie in memory, and its question for a newer pip would often be refused.
            found |= {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return found


@asynccontextmanager
async def open_fittings(
    settings: SandboxSettings, cache_dir: Path | None, leads: Exit | None
) -> AsyncIterator[Fittings]:
    """Open what `settings` ask for and is there; `leads` is the way out, for `network: allowlist`.

    Raises `SandboxError` when the network cannot be opened.
    """
    async with AsyncExitStack() as stack:
        environment = None
        if cache_dir is not None:
            environment = await asyncio.to_thread(usable_environment, settings, cache_dir)
        if environment is not None:
            held = await asyncio.to_thread(stack.enter_context, environment.held())
            environment = environment if held else None
        yield Fittings(environment, await stack.enter_async_context(open_way_out(settings, leads)))
