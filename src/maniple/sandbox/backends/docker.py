"""Docker: one container a thread, with our own worker in it.

The container has no network, a read-only root, no capabilities and limits of memory and processes; its main
process reads from this server, so that the end of the server is its end, too. Where the engine runs on this
machine the workspace is mounted, else it is mirrored. Limits of disk hold for one file at a time.
"""

import json
import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox.account import UNPRIVILEGED, sandbox_account
from maniple.sandbox.backend import Session
from maniple.sandbox.backends.carried import start_carried
from maniple.sandbox.backends.container_files import ContainerFiles, MirroredSession
from maniple.sandbox.backends.engine import DEFAULT_HOST, DEFAULT_IMAGE, explained
from maniple.sandbox.mirror import Mirror
from maniple.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from aiodocker import Docker
    from aiodocker.containers import DockerContainer
    from aiodocker.stream import Stream

WORKSPACE = "/workspace"
_LABEL = "maniple.server"
_MEGABYTE = 1024 * 1024
_GONE, _BEING_REMOVED = 404, 409


class DockerBackend:
    """Starts containers at one engine."""

    name = "docker"

    def __init__(self, docker: "Docker", settings: SandboxSettings) -> None:
        self._docker = docker
        self._settings = settings
        self.mirrors = not (settings.docker_host or DEFAULT_HOST).startswith("unix:")
        """Whether the engine cannot mount this machine's folders, so that files go over to it and back."""

    @property
    def image(self) -> str:
        """The image of the containers."""
        return self._settings.image or DEFAULT_IMAGE

    async def start(self, workspace: Workspace) -> Session:
        """Start a container with a worker in it."""
        with explained(self._settings):
            container = await self._docker.containers.create(self._description(workspace))
            stream = container.attach(stdin=True, stdout=True, stderr=True)
            try:
                # Attached before it starts, so that it never waits for a host that is not there.
                await stream.__aenter__()
                await container.start()
            except BaseException:  # a cancelled start leaves no container
                await _remove(container, stream)
                raise

        async def end() -> None:
            with explained(self._settings):
                await _remove(container, stream)

        session = await start_carried(_Attached(stream, self._settings), end, self._settings, workspace)
        if not self.mirrors:
            return session
        mirror = Mirror(
            workspace, ContainerFiles(container, self._settings), self._settings.disk_mb * _MEGABYTE
        )
        return MirroredSession(session, mirror, workspace)

    async def missing_limits(self) -> list[str]:
        """What the engine cannot hold a container to."""
        with explained(self._settings):
            told = await self._docker.system.info()
        return [words for key, words in _LIMITS.items() if not told.get(key)]

    async def variables(self) -> set[str]:
        """The names in a container's environment that are the image's, Docker's or ours."""
        with explained(self._settings):
            image = await self._docker.images.inspect(self.image)
        names = (entry.partition("=")[0] for entry in image["Config"].get("Env") or [])
        return {"PATH", "HOSTNAME", *names, *_ENVIRONMENT}

    async def remove_orphans(self) -> int:
        """Remove the containers that servers of this machine left behind which are no more; their number."""
        removed = 0
        with explained(self._settings):
            filters = json.dumps({"label": [_LABEL]})
            for container in await self._docker.containers.list(all="true", filters=filters):
                if _is_orphan(container._container.get("Labels", {}).get(_LABEL, "")):
                    await container.delete(force=True, v=True)
                    removed += 1
        return removed

    def _description(self, workspace: Workspace) -> dict[str, Any]:
        relay = resources.files("maniple.sandbox.backends").joinpath("relay.py").read_text(encoding="utf-8")
        return {
            "Image": self.image,
            "Entrypoint": [],
            "Cmd": ["python3", "-I", "-S", "-B", "-c", relay],
            "User": _user(),
            "WorkingDir": WORKSPACE,
            "Hostname": "sandbox",
            "Env": [f"{name}={value}" for name, value in _ENVIRONMENT.items()],
            **{f"Attach{name}": True for name in ("Stdin", "Stdout", "Stderr")},
            "OpenStdin": True,
            "StdinOnce": True,
            "NetworkDisabled": True,
            "Labels": {_LABEL: _server_mark()},
            "HostConfig": self._limits() | self._files(workspace),
        }

    def _files(self, workspace: Workspace) -> dict[str, Any]:
        scratch = {"/tmp": _in_memory(self._settings.memory_mb * _MEGABYTE // 8)}
        if self.mirrors:
            return {"Tmpfs": scratch | {WORKSPACE: _in_memory(self._settings.disk_mb * _MEGABYTE)}}
        return {"Tmpfs": scratch, "Binds": [f"{workspace.path}:{WORKSPACE}:rw"]}

    def _limits(self) -> dict[str, Any]:
        memory = self._settings.memory_mb * _MEGABYTE
        disk = self._settings.disk_mb * _MEGABYTE
        return {
            "AutoRemove": True,
            "Init": True,
            "NetworkMode": "none",
            "IpcMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            # The relay, the worker and Docker's own first process are not the code's.
            "PidsLimit": self._settings.processes + 3,
            "Memory": memory,
            "MemorySwap": memory,
            "Ulimits": [
                {"Name": name, "Soft": most, "Hard": most}
                # With "data" one process gets a MemoryError where all together would be killed.
                for name, most in (("data", memory), ("fsize", disk), ("nofile", 256), ("core", 0))
            ],
            # What code prints goes to us, and not into a file of the engine's.
            "LogConfig": {"Type": "none"},
        }


_ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": WORKSPACE,
    "PYTHONSAFEPATH": "1",
}


_LIMITS = {
    "MemoryLimit": "take more memory than its limit",
    "PidsLimit": "start more processes than its limit",
}


class _Attached:
    """The stream of a container's main process."""

    def __init__(self, stream: "Stream", settings: SandboxSettings) -> None:
        self._stream = stream
        self._settings = settings

    async def receive(self) -> tuple[bytes, bytes]:
        with explained(self._settings):
            message = await self._stream.read_out()
        if message is None:
            return b"", b""
        return (message.data, b"") if message.stream == 1 else (b"", message.data)

    async def send(self, data: bytes) -> None:
        with explained(self._settings):
            await self._stream.write_in(data)

    async def close(self) -> None:
        await _close(self._stream)


async def _remove(container: "DockerContainer", stream: "Stream") -> None:
    from aiodocker import DockerError

    # First the container: one whose input ends is removed by the engine, and nobody would know when.
    try:
        await container.delete(force=True, v=True)
    except DockerError as error:
        if error.status == _BEING_REMOVED:
            with suppress(DockerError):
                await container.wait(condition="removed")
        elif error.status != _GONE:
            raise
    finally:
        await _close(stream)


async def _close(stream: "Stream") -> None:
    with suppress(AssertionError, OSError):  # the SDK asserts that the engine has not closed it first
        await stream.close()


@asynccontextmanager
async def open_docker(settings: SandboxSettings) -> AsyncIterator[DockerBackend]:
    """Open a client of the engine, and remove what dead servers left; raises `SandboxError`."""
    with explained(settings):
        from aiodocker import Docker

        docker = Docker(url=settings.docker_host or DEFAULT_HOST)
    try:
        backend = DockerBackend(docker, settings)
        await backend.remove_orphans()
        yield backend
    finally:
        await docker.close()


def _in_memory(size_bytes: int) -> str:
    """The options of a directory in memory, the user's own whatever the image has at its place."""
    uid, gid = _user().split(":")
    return f"rw,nosuid,nodev,mode=0700,uid={uid},gid={gid},size={size_bytes}"


def _user() -> str:
    """Who the code is: nobody special, and never root; an ordinary user's files need that user."""
    account = sandbox_account()
    if account is not None:
        return f"{UNPRIVILEGED.uid}:{UNPRIVILEGED.gid}"
    return f"{os.getuid()}:{os.getgid()}"


def _server_mark() -> str:
    """What tells this server from all that were and will be: machine, process id, time of its start."""
    return f"{platform.node()}/{os.getpid()}/{_started(os.getpid())}"


def _is_orphan(mark: str) -> bool:
    machine, _, process = mark.rpartition("/")[0].rpartition("/")
    if machine != platform.node() or not process.isdecimal():
        return False
    return _started(int(process)) != mark.rpartition("/")[2]


def _started(process: int) -> str:
    """When a process started, in ticks since the machine did; nothing when there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
