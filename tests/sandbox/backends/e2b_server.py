"""The part of E2B's API that its SDK uses here: control plane, envd's processes and files, Jupyter's door.

See https://e2b.dev/docs/sdk-reference; envd speaks the Connect protocol (https://connectrpc.com/docs/protocol).
"""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.sandbox.backends.machines import Machine
from tests.sandbox.backends.running import running

KEY = "e2b_right"


class E2BServer:
    """Serves machines; `created` are the bodies of the requests for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.machines: dict[str, Machine] = {}
        self.created: list[dict[str, Any]] = []
        self.lifetimes: list[int] = []
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**28)
        app.add_routes(
            [
                web.post("/v2/sandboxes", self._create),
                web.delete("/sandboxes/{id}", self._kill),
                web.post("/sandboxes/{id}/timeout", self._timeout),
                web.get("/health", self._health),
                web.get("/files", self._read),
                web.post("/files", self._write),
                web.post("/process.Process/Start", self._start),
                web.post("/contexts", self._context),
                web.post("/contexts/{context}/restart", self._restart),
                web.post("/execute", self._execute),
            ]
        )
        return app

    async def _create(self, request: web.Request) -> web.Response:
        if request.headers.get("X-API-KEY") != KEY:
            return _error(401, "invalid API key")
        body = await request.json()
        if body["templateID"] == "missing":
            return _error(404, "template 'missing' not found")
        if body["templateID"] == "full":
            return _error(429, "too many sandboxes")
        self.created.append(body)
        name = f"machine{len(self.machines) + 1}"
        self.machines[name] = Machine(self._folder / name)
        made = {"templateID": body["templateID"], "sandboxID": name, "clientID": "c", "envdVersion": "0.6.4"}
        return web.json_response(made | {"envdAccessToken": "t"}, status=201)

    async def _kill(self, request: web.Request) -> web.Response:
        machine = self.machines[request.match_info["id"]]
        if machine.gone:
            return _error(404, "no such sandbox")
        await machine.close()
        return web.Response(status=204)

    async def _timeout(self, request: web.Request) -> web.Response:
        if self.machines[request.match_info["id"]].gone:
            return _error(404, "no such sandbox")
        self.lifetimes.append((await request.json())["timeout"])
        return web.Response(status=204)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=502 if self._machine(request).gone else 204)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        path = self._machine(request).path(request.query["path"])
        if not path.is_file():
            return _error(404, "path not found")
        return web.FileResponse(path)

    async def _write(self, request: web.Request) -> web.Response:
        machine, written = self._machine(request), []
        async for part in await request.multipart():
            path = machine.path(request.query.get("path") or part.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(await part.read())
            written.append({"path": str(path), "name": path.name, "type": "file"})
        return web.json_response(written)

    async def _start(self, request: web.Request) -> web.StreamResponse:
        asked = json.loads((await request.read())[5:])["process"]
        machine = self._machine(request)
        if machine.gone:
            return _error(502, "The sandbox was not found")
        process = await machine.start(
            asked["cmd"], *asked["args"], envs=asked.get("envs"), cwd=asked.get("cwd")
        )
        response = web.StreamResponse(headers={"Content-Type": "application/connect+json"})
        await response.prepare(request)
        await response.write(_frame({"event": {"start": {"pid": process.pid}}}))

        async def follow(stream: asyncio.StreamReader, name: str) -> None:
            while data := await stream.read(65_536):
                told = base64.b64encode(data).decode()
                await response.write(_frame({"event": {"data": {name: told}}}))

        assert process.stdout is not None
        assert process.stderr is not None
        await asyncio.gather(follow(process.stdout, "stdout"), follow(process.stderr, "stderr"))
        code = await process.wait()
        await response.write(_frame({"event": {"end": {"exitCode": code, "exited": code >= 0}}}))
        await response.write(_frame({}, flags=2))
        return response

    async def _context(self, request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response({"id": "kernel", "language": "python", "cwd": asked["cwd"]})

    async def _restart(self, request: web.Request) -> web.Response:
        await self._machine(request).restart(request.match_info["context"])
        return web.Response(status=204)

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        asked, machine = await request.json(), self._machine(request)
        response = web.StreamResponse()
        await response.prepare(request)
        workspace = str(machine.root / "workspace")
        async for event in machine.execute(asked["context_id"], asked["code"], workspace):
            await response.write(json.dumps(event).encode() + b"\n")
        return response

    def _machine(self, request: web.Request) -> Machine:
        return self.machines[request.headers["E2b-Sandbox-Id"]]


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"code": status, "message": message}, status=status)


def _frame(message: dict[str, Any], flags: int = 0) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


@asynccontextmanager
async def e2b_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    """Serve what the SDK takes for E2B from now on."""
    async with running(E2BServer(folder)) as server:
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        yield server
