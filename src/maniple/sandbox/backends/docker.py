"""Docker: one container a thread, with our own worker in it.

The container has no network, a read-only root, no capabilities and limits of memory and processes; its main
process reads from this server, so that the end of the server is its end, too. Where the engine runs on this
machine the workspace is mounted, else it is mirrored. Limits of disk hold for one file at a time.
"""

import asyncio
import io
import json
import os
import platform
import socket
import struct
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import ExecutionResult, OnOutput, SandboxSession
from maniple.sandbox.backends.remote import (
    LISTING_BYTES,
    FileStamp,
    WorkspaceMirror,
    list_files,
    print_file,
    read_listing,
    remove_files,
)
from maniple.sandbox.host import UNPRIVILEGED, find_sandbox_account, standalone_program
from maniple.sandbox.isolation import WORKSPACE
from maniple.sandbox.processes import OutputPipe, ProcessTree
from maniple.sandbox.worker_session import WorkerChannel, WorkerConnection, WorkerSession, read_worker_sources
from maniple.sandbox.workspaces import FileHead, Workspace

if TYPE_CHECKING:
    from aiodocker import Docker
    from aiodocker.containers import DockerContainer
    from aiodocker.stream import Stream

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

    async def start(self, workspace: Workspace) -> SandboxSession:
        """Start a container with a worker in it."""
        with translate_errors(self._settings):
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
            with translate_errors(self._settings):
                await _remove(container, stream)

        session = await start_relayed_worker(
            _Attached(stream, self._settings), end, self._settings, workspace
        )
        if not self.mirrors:
            return session
        mirror = WorkspaceMirror(
            workspace, ContainerFiles(container, self._settings), self._settings.disk_mb * _MEGABYTE
        )
        return MirroredSession(session, mirror, workspace)

    async def missing_limits(self) -> list[str]:
        """What the engine cannot hold a container to."""
        with translate_errors(self._settings):
            told = await self._docker.system.info()
        return [words for key, words in _LIMITS.items() if not told.get(key)]

    async def variables(self) -> set[str]:
        """The names in a container's environment that are the image's, Docker's or ours."""
        with translate_errors(self._settings):
            image = await self._docker.images.inspect(self.image)
        names = (entry.partition("=")[0] for entry in image["Config"].get("Env") or [])
        return {"PATH", "HOSTNAME", *names, *_ENVIRONMENT}

    async def remove_orphans(self) -> int:
        """Remove the containers that servers of this machine left behind which are no more; their number."""
        removed = 0
        with translate_errors(self._settings):
            filters = json.dumps({"label": [_LABEL]})
            for container in await self._docker.containers.list(all="true", filters=filters):
                if _is_orphan(container._container.get("Labels", {}).get(_LABEL, "")):
                    await container.delete(force=True, v=True)
                    removed += 1
        return removed

    def _description(self, workspace: Workspace) -> dict[str, Any]:
        relay = standalone_program("relay.py").read_text(encoding="utf-8")
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
        with translate_errors(self._settings):
            message = await self._stream.read_out()
        if message is None:
            return b"", b""
        return (message.data, b"") if message.stream == 1 else (b"", message.data)

    async def send(self, data: bytes) -> None:
        with translate_errors(self._settings):
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
    with translate_errors(settings):
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
    account = find_sandbox_account()
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


DEFAULT_IMAGE = "python:3.12-slim"
DEFAULT_HOST = "unix:///var/run/docker.sock"
_UNREACHABLE = 900  # what the SDK says where there was no answer


@contextmanager
def translate_errors(settings: SandboxSettings) -> Iterator[None]:
    """Turn what the SDK raises into a sentence that says what to do."""
    import aiohttp
    from aiodocker import DockerError

    image = settings.image or DEFAULT_IMAGE
    try:
        yield
    except DockerError as error:
        if (
            error.status == _UNREACHABLE
        ):  # its own words hold the whole address, and a password may stand in it
            raise SandboxError(_unreachable(settings)) from None
        if error.status == 404 and "image" in error.message.casefold():
            raise SandboxError(f"Docker does not have the image {image}: docker pull {image}") from None
        raise SandboxError(f"Docker could not do it: {error.message}") from error
    except (ValueError, ImportError) as error:
        raise SandboxError(f"DOCKER_HOST names no engine that can be used: {error}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise SandboxError(_unreachable(settings)) from error


def _unreachable(settings: SandboxSettings) -> str:
    host = "that DOCKER_HOST names" if settings.docker_host else f"at {DEFAULT_HOST}"
    return (
        f"Docker's engine {host} cannot be reached: `systemctl start docker`, let this user belong to the "
        "group docker, or correct DOCKER_HOST."
    )


_START_SECONDS = 30.0
_END_SECONDS = 10.0
_LAST_WORDS_BYTES = 4000
_LONGEST_FRAME_BYTES = 65_536
_FRAME_OVERHEAD_BYTES = 65_536
_HEAD = struct.Struct(">BI")


class ByteStream(Protocol):
    """A way into a machine and out of it. Raises `SandboxError`."""

    async def receive(self) -> tuple[bytes, bytes]:
        """What came on its standard output and its standard error; twice nothing at the end."""
        ...

    async def send(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class RelayedWorker:
    """Carries frames between a session's ends and a stream; a `Tree` to its session.

    `end` makes an end of the machine, with everything that runs there.
    """

    pid = 0
    """No process of the host's."""

    def __init__(self, stream: ByteStream, end: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        self._stream = stream
        self._end = end
        self._sending: asyncio.Queue[bytes] = asyncio.Queue()
        self._received = bytearray()
        self._complaints = bytearray()
        self._pairs = [socket.socketpair() for _ in range(2)]
        for _, writing in self._pairs:
            writing.setblocking(False)
        self._channels: list[WorkerChannel] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.ended: asyncio.Future[None] = loop.create_future()

    def outputs(self, limit_bytes: int) -> list[OutputPipe]:
        """What the worker prints."""
        return [OutputPipe(reading.detach(), limit_bytes) for reading, _ in self._pairs]

    def carry(self, channels: list[WorkerChannel]) -> None:
        """Begin, with the channels of control and calls."""
        self._channels = channels
        for number, channel in enumerate(channels):
            channel.connection_made(_Door(partial(self._put, number)))
        sources = {name: text.decode() for name, text in read_worker_sources().items()}
        self._put(0, json.dumps(sources).encode())
        self._tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._speak())]

    def complaints(self) -> str:
        """What came out of the machine that was no frame: why it did not start."""
        return self._complaints.decode(errors="replace").strip()

    async def kill(self) -> None:
        """End the machine; harmless afterwards."""
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._end()
                await self._stream.close()
        except TimeoutError:
            raise SandboxError("The machine of the sandbox did not end in time; look after it.") from None
        finally:
            for _, writing in self._pairs:
                writing.close()
            self._over()

    def _put(self, channel: int, content: bytes) -> None:
        self._sending.put_nowait(_HEAD.pack(channel, len(content)) + content)

    async def _speak(self) -> None:
        with suppress(SandboxError):  # its end is heard by the other one
            while True:
                await self._stream.send(await self._sending.get())

    async def _hear(self) -> None:
        try:
            while any(heard := await self._stream.receive()):
                self._received += heard[0]
                self._complaints += heard[1]
                del self._complaints[:-_LAST_WORDS_BYTES]
                await self._deal_out()
        except SandboxError as error:
            self._complaints += f"\n{error}".encode()
        finally:
            self._over()

    async def _deal_out(self) -> None:
        while len(self._received) >= _HEAD.size:
            channel, length = _HEAD.unpack_from(self._received)
            if channel > 3 or length > _LONGEST_FRAME_BYTES:
                raise SandboxError("The machine of the sandbox sent what is no frame.")
            end = _HEAD.size + length
            if len(self._received) < end:
                return
            content = bytes(self._received[_HEAD.size : end])
            del self._received[:end]
            if channel < 2:
                self._channels[channel].data_received(content)
            else:
                # A reader that has closed its end wants no more of it.
                with suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(self._pairs[channel - 2][1], content)

    def _over(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _Door(asyncio.Transport):
    """What a channel writes to."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        super().__init__()
        self._put = put
        self._closed = False

    def write(self, data: Any) -> None:
        if not self._closed:
            self._put(bytes(data))

    def is_closing(self) -> bool:
        return self._closed

    def abort(self) -> None:
        self._closed = True


async def start_relayed_worker(
    stream: ByteStream, end: Callable[[], Awaitable[None]], settings: SandboxSettings, workspace: Workspace
) -> WorkerSession:
    """Speak with the `relay.py` at the other end; raises `SandboxError` when it does not answer."""
    carrier = RelayedWorker(stream, end)
    outputs = carrier.outputs(settings.output_bytes)
    session = WorkerSession(cast(ProcessTree, carrier), settings, workspace)
    limit_bytes = 6 * settings.output_bytes + _FRAME_OVERHEAD_BYTES
    control, calls = (
        WorkerChannel(limit_bytes, session.handle_message, session.handle_invalid) for _ in range(2)
    )
    session.attach(WorkerConnection(control, calls, outputs[0], outputs[1]))
    try:
        carrier.carry([control, calls])
        ready = await session.wait_until_ready(_START_SECONDS)
    except BaseException:  # a cancelled start leaves nothing behind
        await session.stop()
        raise
    if not ready:
        words = f"{carrier.complaints()} {session.take_unclaimed_output()}".strip()
        await session.stop()
        raise SandboxError(f"Python did not start in the container: {words or 'it said nothing.'}")
    return session


_TRANSFER_SECONDS = 60


class ContainerFiles:
    """The files in a container's working directory."""

    def __init__(self, container: "DockerContainer", settings: SandboxSettings) -> None:
        self._container = container
        self._settings = settings

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        """The files as the container tells them."""
        printed = await self._run(list_files(WORKSPACE, limit), limit_bytes=2 * LISTING_BYTES)
        return read_listing(printed.decode(errors="replace"))

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """One file."""
        most = limit_bytes + 1
        printed = await self._run(print_file(WORKSPACE, path, most), limit_bytes=1 + most)
        if not printed:
            raise FileError(f"{path!r} could not be read in the container.")
        if len(printed) > most:
            raise FileError(f"{path!r} has more than the {limit_bytes} bytes that can be kept.")
        return printed[1:]

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files."""
        archive = _archive(files)
        await self._run(f"head -c {len(archive)} | tar -xf - --no-same-owner -C {WORKSPACE}", archive)

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        for command in remove_files(WORKSPACE, paths):
            await self._run(command)

    async def _run(self, command: str, given: bytes = b"", limit_bytes: int = 65_536) -> bytes:
        """What a command prints, as far as the limit goes."""
        printed = bytearray()
        with translate_errors(self._settings):
            async with asyncio.timeout(_TRANSFER_SECONDS):
                await self._exchange(command, given, printed, limit_bytes)
        return bytes(printed[:limit_bytes])

    async def _exchange(self, command: str, given: bytes, printed: bytearray, limit_bytes: int) -> None:
        execution = await self._container.exec(["bash", "-c", command], stdin=bool(given))
        async with execution.start(detach=False) as stream:
            if given:
                await stream.write_in(given)
            while len(printed) < limit_bytes and (message := await stream.read_out()) is not None:
                if message.stream == 1:
                    printed += message.data


class MirroredSession:
    """A session whose files are on another machine while a call runs, and here otherwise."""

    def __init__(self, session: WorkerSession, mirror: WorkspaceMirror, workspace: Workspace) -> None:
        self._session = session
        self._mirror = mirror
        self._workspace = workspace
        self.pid = session.pid
        self.stop_for_limit = session.stop_for_limit
        self.on_end = session.on_end

    @property
    def is_alive(self) -> bool:
        """Whether it can take another call."""
        return self._session.is_alive

    @property
    def ending(self) -> str:
        """Why the session has ended, for the model."""
        return self._session.ending

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        """Run Python code where its variables are."""
        left = await self._up()
        return await self._down(await self._session.run_python(code, on_output=on_output), left)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        """Run a command of bash in a process of its own."""
        left = await self._up()
        return await self._down(await self._session.run_bash(command, on_output=on_output), left)

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """The first bytes of a file, as the last call left it."""
        return await self._session.read(path, limit_bytes)

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file; the next call sees it."""
        await self._session.write(path, content)

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` files."""
        return await self._session.list(limit)

    async def stop(self) -> None:
        """End the session; a second time does nothing."""
        await self._session.stop()

    async def _up(self) -> str:
        try:
            return await self._mirror.up()
        except BaseException:  # half of the files are there: better none
            await self.stop()
            raise

    async def _down(self, completed: ExecutionResult, left: str) -> ExecutionResult:
        if not self.is_alive:
            lost = "what the last call wrote could not be brought back."
            return replace(completed, lost=f"{completed.lost} Files: {lost}".strip())
        try:
            left = "\n".join(filter(None, (completed.stderr, left, await self._mirror.down())))
        except BaseException:  # what is there and what is here would not be the same
            await self.stop()
            raise
        return replace(completed, stderr=left)


def _archive(files: Sequence[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
