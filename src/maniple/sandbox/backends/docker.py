"""The Docker backend: one container per session, with our own worker in it.

The container has no network, a read-only root, no capabilities, and limits of memory and processes. Its main
process, `standalone/relay.py`, reads from this server and ends with it. An engine on this machine mounts the
workspace; for any other the workspace is mirrored. The disk limit holds for each file.
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
from maniple.sandbox.host import standalone_program
from maniple.sandbox.isolation import WORKSPACE
from maniple.sandbox.processes import OutputPipe, ProcessTree
from maniple.sandbox.worker_session import WorkerChannel, WorkerConnection, WorkerSession, read_worker_sources
from maniple.workspace.account import UNPRIVILEGED, find_sandbox_account
from maniple.workspace.files import FileHead, Workspace

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
        """Whether files are mirrored because the engine cannot mount this machine's folders."""

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
                # Attached before the start, so that it never waits for a missing host.
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
        """Return the limits that the engine cannot enforce."""
        with translate_errors(self._settings):
            info = await self._docker.system.info()
        return [words for key, words in _LIMITS.items() if not info.get(key)]

    async def variables(self) -> set[str]:
        """Return the variable names of a container that the image, Docker or we set."""
        with translate_errors(self._settings):
            image = await self._docker.images.inspect(self.image)
        names = (entry.partition("=")[0] for entry in image["Config"].get("Env") or [])
        return {"PATH", "HOSTNAME", *names, *_ENVIRONMENT}

    async def remove_orphans(self) -> int:
        """Remove the containers of ended servers of this machine; return their number."""
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
            # The relay, the worker and Docker's init process do not count.
            "PidsLimit": self._settings.processes + 3,
            "Memory": memory,
            "MemorySwap": memory,
            "Ulimits": [
                {"Name": name, "Soft": most, "Hard": most}
                # With "data", a single process gets a MemoryError before all are killed.
                for name, most in (("data", memory), ("fsize", disk), ("nofile", 256), ("core", 0))
            ],
            # The output goes to us and not into a log file of the engine.
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

    # First the container: after the end of its input the engine removes it at an unknown time.
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
    with suppress(AssertionError, OSError):  # the SDK asserts that the engine has not closed the stream first
        await stream.close()


@asynccontextmanager
async def open_docker(settings: SandboxSettings) -> AsyncIterator[DockerBackend]:
    """Open a client of the engine and remove leftovers of ended servers; raises `SandboxError`."""
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
    """Return the options of a tmpfs that the user owns."""
    uid, gid = _user().split(":")
    return f"rw,nosuid,nodev,mode=0700,uid={uid},gid={gid},size={size_bytes}"


def _user() -> str:
    """Return the user of the code: never root; for an ordinary user, the owner of the files."""
    account = find_sandbox_account()
    if account is not None:
        return f"{UNPRIVILEGED.uid}:{UNPRIVILEGED.gid}"
    return f"{os.getuid()}:{os.getgid()}"


def _server_mark() -> str:
    """Return a unique mark of this server: machine, process id, start time."""
    return f"{platform.node()}/{os.getpid()}/{_start_time(os.getpid())}"


def _is_orphan(mark: str) -> bool:
    machine, _, process = mark.rpartition("/")[0].rpartition("/")
    if machine != platform.node() or not process.isdecimal():
        return False
    return _start_time(int(process)) != mark.rpartition("/")[2]


def _start_time(process: int) -> str:
    """Return the start time of a process in ticks since boot; empty for no process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


DEFAULT_IMAGE = "python:3.12-slim"
DEFAULT_HOST = "unix:///var/run/docker.sock"
_UNREACHABLE = 900  # the SDK's code for no answer


@contextmanager
def translate_errors(settings: SandboxSettings) -> Iterator[None]:
    """Raise errors of the SDK again as `SandboxError`, with what to do."""
    import aiohttp
    from aiodocker import DockerError

    image = settings.image or DEFAULT_IMAGE
    try:
        yield
    except DockerError as error:
        if error.status == _UNREACHABLE:  # its message contains the whole address, which may have a password
            raise SandboxError(_unreachable(settings)) from None
        if error.status == 404 and "image" in error.message.casefold():
            raise SandboxError(f"Docker does not have the image {image}: docker pull {image}") from None
        raise SandboxError(f"Docker reported an error: {error.message}") from error
    except (ValueError, ImportError) as error:
        raise SandboxError(f"DOCKER_HOST does not name a usable engine: {error}") from None
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
_UNFRAMED_BYTES = 4000
_MAX_FRAME_BYTES = 65_536
_FRAME_OVERHEAD_BYTES = 65_536
_HEAD = struct.Struct(">BI")


class ByteStream(Protocol):
    """A byte stream to and from a machine. Raises `SandboxError`."""

    async def receive(self) -> tuple[bytes, bytes]:
        """Return new standard output and standard error; both are empty at the end."""
        ...

    async def send(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class RelayedWorker:
    """Carries frames between a session's ends and a stream; a `Tree` to its session.

    `end` makes an end of the machine, with everything that runs there.
    """

    pid = 0
    """It has no process on the host."""

    def __init__(self, stream: ByteStream, end: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        self._stream = stream
        self._end = end
        self._sending: asyncio.Queue[bytes] = asyncio.Queue()
        self._received = bytearray()
        self._unframed = bytearray()
        self._pairs = [socket.socketpair() for _ in range(2)]
        for _, writing in self._pairs:
            writing.setblocking(False)
        self._channels: list[WorkerChannel] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.ended: asyncio.Future[None] = loop.create_future()

    def outputs(self, limit_bytes: int) -> list[OutputPipe]:
        """Return the pipes for the output of the worker."""
        return [OutputPipe(reading.detach(), limit_bytes) for reading, _ in self._pairs]

    def start(self, channels: list[WorkerChannel]) -> None:
        """Start to transfer, with the channels of control and calls."""
        self._channels = channels
        for number, channel in enumerate(channels):
            channel.connection_made(_FrameTransport(partial(self._put, number)))
        sources = {name: text.decode() for name, text in read_worker_sources().items()}
        self._put(0, json.dumps(sources).encode())
        self._tasks = [asyncio.create_task(self._receive_all()), asyncio.create_task(self._send_all())]

    def unframed_output(self) -> str:
        """Return output of the machine outside of frames: why it did not start."""
        return self._unframed.decode(errors="replace").strip()

    async def kill(self) -> None:
        """End the machine; later calls do nothing."""
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._end()
                await self._stream.close()
        except TimeoutError:
            raise SandboxError(
                "The container did not end in time. Remove it with `docker rm --force`."
            ) from None
        finally:
            for _, writing in self._pairs:
                writing.close()
            self._over()

    def _put(self, channel: int, content: bytes) -> None:
        self._sending.put_nowait(_HEAD.pack(channel, len(content)) + content)

    async def _send_all(self) -> None:
        with suppress(SandboxError):  # the receiving task handles the end
            while True:
                await self._stream.send(await self._sending.get())

    async def _receive_all(self) -> None:
        try:
            while any(output := await self._stream.receive()):
                self._received += output[0]
                self._unframed += output[1]
                del self._unframed[:-_UNFRAMED_BYTES]
                await self._dispatch()
        except SandboxError as error:
            self._unframed += f"\n{error}".encode()
        finally:
            self._over()

    async def _dispatch(self) -> None:
        while len(self._received) >= _HEAD.size:
            channel, length = _HEAD.unpack_from(self._received)
            if channel > 3 or length > _MAX_FRAME_BYTES:
                raise SandboxError("The container sent an invalid frame.")
            end = _HEAD.size + length
            if len(self._received) < end:
                return
            content = bytes(self._received[_HEAD.size : end])
            del self._received[:end]
            if channel < 2:
                self._channels[channel].data_received(content)
            else:
                # The reader may have closed its end.
                with suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(self._pairs[channel - 2][1], content)

    def _over(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _FrameTransport(asyncio.Transport):
    """The transport of a channel: it queues frames."""

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
    """Start a session with a `relay.py` at the other end of a stream.

    Raises `SandboxError` without an answer.
    """
    relayed = RelayedWorker(stream, end)
    outputs = relayed.outputs(settings.output_bytes)
    session = WorkerSession(cast(ProcessTree, relayed), settings, workspace)
    limit_bytes = 6 * settings.output_bytes + _FRAME_OVERHEAD_BYTES
    control, calls = (
        WorkerChannel(limit_bytes, session.handle_message, session.handle_invalid) for _ in range(2)
    )
    session.attach(WorkerConnection(control, calls, outputs[0], outputs[1]))
    try:
        relayed.start([control, calls])
        ready = await session.wait_until_ready(_START_SECONDS)
    except BaseException:  # a cancelled start leaves nothing behind
        await session.stop()
        raise
    if not ready:
        output = f"{relayed.unframed_output()} {session.take_unclaimed_output()}".strip()
        await session.stop()
        raise SandboxError(f"Python did not start in the container: {output or 'it printed nothing.'}")
    return session


_TRANSFER_SECONDS = 60


class ContainerFiles:
    """The files in a container's working directory."""

    def __init__(self, container: "DockerContainer", settings: SandboxSettings) -> None:
        self._container = container
        self._settings = settings

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        """Return the files as the container reports them."""
        printed = await self._run(list_files(WORKSPACE, limit), limit_bytes=2 * LISTING_BYTES)
        return read_listing(printed.decode(errors="replace"))

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """One file."""
        most = limit_bytes + 1
        printed = await self._run(print_file(WORKSPACE, path, most), limit_bytes=1 + most)
        if not printed:
            raise FileError(f"{path!r} could not be read in the container.")
        if len(printed) > most:
            raise FileError(f"{path!r} has more than the {limit_bytes} bytes that can be stored.")
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
        """Return the output of a command up to the limit."""
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
        self.background = session.background

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
        except BaseException:  # an incomplete upload must not be used
            await self.stop()
            raise

    async def _down(self, completed: ExecutionResult, left: str) -> ExecutionResult:
        if not self.is_alive:
            lost = "what the last call wrote could not be brought back."
            return replace(completed, lost=f"{completed.lost} Files: {lost}".strip())
        try:
            left = "\n".join(filter(None, (completed.stderr, left, await self._mirror.down())))
        except BaseException:  # both sides would differ
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
