"""The part of Docker's Engine API that its client uses here; a container is a real process of this machine.

See https://docs.docker.com/reference/api/engine/: an attached stream takes the connection over, and what the
container prints comes in frames with a header of eight bytes.
"""

import asyncio
import os
import select
import signal
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from aiohttp import web

from maniple.sandbox.isolation import build_seccomp_filter

IMAGES = ("python:3.12-slim", "broken", "holding")
"""The first holds nothing back: its containers are plain processes. The last is a cage, as real ones are."""


@dataclass
class Container:
    """A container, and its process once it has been started."""

    id: str
    description: dict[str, Any]
    folder: Path
    process: asyncio.subprocess.Process | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    execs: dict[str, list[str]] = field(default_factory=dict)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    @property
    def workspace(self) -> str:
        """Where /workspace is on this machine."""
        binds = self.description["HostConfig"].get("Binds", [])
        return binds[0].partition(":")[0] if binds else str(self.folder)

    def command(self, words: list[str]) -> list[str]:
        return [word.replace("/workspace", self.workspace) for word in words]

    async def spawn(self, words: list[str]) -> asyncio.subprocess.Process:
        variables = (entry.partition("=") for entry in self.description.get("Env", []))
        cage = ["bwrap", "--tmpfs", "/", "--bind", self.workspace, "/workspace", *_CAGE]
        holds = self.description["Image"] == "holding"
        process = await asyncio.create_subprocess_exec(
            *([*cage, "/usr/bin/python3", *words[1:]] if holds else words),
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"]}
            | {name: value.replace("/workspace", self.workspace) for name, _, value in variables},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_rules if holds else None,
            pass_fds=[_RULES] if holds else [],
        )
        self.processes.append(process)
        return process


_RULES = 9
_CAGE = [
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"),
    *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"),
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--remount-ro", "/"),
    *("--chdir", "/workspace", "--seccomp", str(_RULES), "--"),
    *(["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "--"] if os.geteuid() == 0 else []),
]


def _rules() -> None:
    """Give the cage its system-call filter, where it looks for it."""
    descriptor = os.memfd_create("rules")
    os.write(descriptor, build_seccomp_filter())
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.dup2(descriptor, _RULES)


class _Input:
    """Hands on what comes in over a connection that was taken over, once somebody is there to have it."""

    def __init__(self) -> None:
        self._early = b""
        self._writer: asyncio.StreamWriter | None = None

    def pass_on(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        writer.write(self._early)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._writer is None:
            self._early += data
        elif not self._writer.is_closing():
            self._writer.write(data)
        return False, b""

    def feed_eof(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def set_exception(self, *_: BaseException) -> None:
        self.feed_eof()


class DockerServer:
    """An engine with a few images."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.containers: dict[str, Container] = {}
        self.removed: list[str] = []
        self._all: list[Container] = []
        self.blind = False
        """Whether this machine's folders are not its own, so that it mounts empty ones."""
        self.info = {"MemoryLimit": True, "PidsLimit": True}

    def app(self) -> web.Application:
        app = web.Application()
        one = "/{version}/containers/{id}"
        app.add_routes(
            [
                web.get("/version", self._version),
                web.get("/{version}/info", self._info),
                web.get("/{version}/images/{name}/json", self._image),
                web.post("/{version}/containers/create", self._create),
                web.get("/{version}/containers/json", self._list),
                web.get(one + "/json", self._show),
                web.post(one + "/attach", self._attach),
                web.post(one + "/start", self._start),
                web.post(one + "/exec", self._exec),
                web.delete(one, self._delete),
                web.get("/{version}/exec/{exec}/json", self._show_exec),
                web.post("/{version}/exec/{exec}/start", self._start_exec),
            ]
        )
        return app

    async def close(self) -> None:
        for container in list(self.containers.values()):
            await self.remove(container)
        for process in [process for container in self._all for process in container.processes]:
            if process.returncode is None:
                await asyncio.to_thread(_end, process.pid)
            await process.wait()
            # A pipe that was not read to its end would stay open: uvloop reports it when the loop closes.
            process._transport.close()  # type: ignore[attr-defined]

    async def remove(self, container: Container) -> None:
        self.containers.pop(container.id, None)
        self.removed.append(container.id)
        if container.process is not None:
            # What the kernel does with a namespace: whatever was started in it ends, its first process before
            # it could see another one end.
            for pid in (container.process.pid, *_descendants(container.process.pid)):
                await asyncio.to_thread(_end, pid)
            await container.process.wait()

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"ApiVersion": "1.50"})

    async def _info(self, request: web.Request) -> web.Response:
        return web.json_response(self.info)

    async def _image(self, request: web.Request) -> web.Response:
        return web.json_response({"Config": {"Env": ["PYTHON_VERSION=3.12"]}})

    async def _create(self, request: web.Request) -> web.Response:
        description = await request.json()
        if description["Image"] not in IMAGES:
            return _error(404, f"No such image: {description['Image']}")
        number = f"container{len(self.containers) + len(self.removed) + 1}"
        folder = self._folder / number
        folder.mkdir(parents=True)
        if description["Image"] == "broken":
            description["Cmd"] = ["sh", "-c", "echo python3: not found >&2; exit 127"]
        if self.blind:
            description["HostConfig"].pop("Binds", None)
        self.containers[number] = Container(number, description, folder)
        self._all.append(self.containers[number])
        return web.json_response({"Id": number, "Warnings": []}, status=201)

    async def _list(self, request: web.Request) -> web.Response:
        found = [{"Id": one.id, "Labels": one.description["Labels"]} for one in self.containers.values()]
        return web.json_response(found)

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response({"Id": request.match_info["id"], "Config": {"Tty": False}})

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        container = self.containers[request.match_info["id"]]
        given = _take_over(request)
        await container.started.wait()
        assert container.process is not None
        await _join(request, given, container.process)
        if container.id in self.containers:  # AutoRemove
            await self.remove(container)
        return web.Response()

    async def _start(self, request: web.Request) -> web.Response:
        container = self.containers[request.match_info["id"]]
        container.process = await container.spawn(container.description["Cmd"])
        container.started.set()
        return web.Response(status=204)

    async def _delete(self, request: web.Request) -> web.Response:
        container = self.containers.get(request.match_info["id"])
        if container is None:
            return _error(404, "No such container")
        await self.remove(container)
        return web.Response(status=204)

    async def _exec(self, request: web.Request) -> web.Response:
        container = self.containers[request.match_info["id"]]
        number = f"{container.id}-{len(container.execs)}"
        container.execs[number] = (await request.json())["Cmd"]
        return web.json_response({"Id": number}, status=201)

    async def _show_exec(self, request: web.Request) -> web.Response:
        return web.json_response({"ID": request.match_info["exec"], "ProcessConfig": {"tty": False}})

    async def _start_exec(self, request: web.Request) -> web.StreamResponse:
        number = request.match_info["exec"]
        container = self.containers[number.partition("-")[0]]
        await request.read()
        given = _take_over(request)
        process = await container.spawn(container.command(container.execs[number]))
        await _join(request, given, process)
        await process.wait()
        return web.Response()


def _take_over(request: web.Request) -> _Input:
    given = _Input()
    request.protocol.set_parser(given)
    _transport(request).write(
        b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
        b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
    )
    return given


def _transport(request: web.Request) -> asyncio.Transport:
    return cast(asyncio.Transport, request.transport)  # uvloop's have its methods and not its name


async def _join(request: web.Request, given: _Input, process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    given.pass_on(process.stdin)
    transport = _transport(request)

    async def follow(stream: asyncio.StreamReader | None, number: int) -> None:
        assert stream is not None
        while data := await stream.read(32_768):
            transport.write(struct.pack(">BxxxL", number, len(data)) + data)
            await request.protocol._drain_helper()

    with suppress(ConnectionError):
        await asyncio.gather(follow(process.stdout, 1), follow(process.stderr, 2))
    transport.close()


def _end(pid: int) -> None:
    """Kill a process and wait for its end."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            select.select([descriptor], [], [], 10)
        finally:
            os.close(descriptor)


def _descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, children) for each in (child, *_descendants(child))]


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


@asynccontextmanager
async def docker_server(folder: Path) -> AsyncIterator[tuple[DockerServer, str]]:
    """Serve on a unix socket; yields the engine and its address."""
    server = DockerServer(folder / "engine")
    runner = web.AppRunner(server.app(), handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    path = folder / "docker.sock"
    try:
        await web.UnixSite(runner, str(path)).start()
        yield server, f"unix://{path}"
    finally:
        await server.close()
        await runner.cleanup()
