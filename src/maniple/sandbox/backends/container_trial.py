"""What a container must show before code is run in one: that it holds what it is to hold."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backends.docker import DockerBackend
from maniple.sandbox.trial import find_escapes
from maniple.sandbox.watched import WatchableBackend
from maniple.sandbox.workspaces import Workspaces
from maniple.types import Unavailable

# The image's own file, and what the engine limits by other means (see `missing_limits`).
_NO_ESCAPES = (
    *("read /etc/passwd", "take more memory than its limit", "start more than"),
    "share more memory than its limit",
)
_MARK = "seen"


async def check_container(backend: DockerBackend, settings: SandboxSettings) -> None:
    """Let code in a container try to get out; raises `SandboxError` that says what it could do.

    Finds out, too, whether the engine sees this machine's files; if not, they are mirrored from now on.
    """
    if missing := await backend.missing_limits():
        raise SandboxError(
            f"Code in a container could {'; '.join(missing)}: the engine's kernel cannot limit it."
        )
    backend.mirrors = backend.mirrors or not await _sees_files(backend)
    watchable = cast(WatchableBackend, backend)  # its processes are not seen here, and need not be
    found = await find_escapes(watchable, await backend.variables(), settings.processes)
    if isinstance(found, Unavailable):
        raise SandboxError(str(found))
    if escapes := [one for one in found if not one.startswith(_NO_ESCAPES)]:
        words = f"Code in a container of this engine could {'; '.join(escapes)}"
        raise SandboxError(f"{words}. Update Docker: 23 and newer let less through.")


async def _sees_files(backend: DockerBackend) -> bool:
    with TemporaryDirectory(prefix="maniple-hello-") as folder:
        workspace = Workspaces(Path(folder, "workspaces")).open("hello")
        workspace.write("hello", _MARK.encode())
        session = await backend.start(workspace)
        try:
            return (await session.run_bash("cat hello")).stdout == _MARK
        finally:
            await session.stop()
