"""The part of Daytona's API that its SDK uses here: sandboxes, and the toolbox inside each.

See https://www.daytona.io/docs/en/tools/api: output comes over WebSockets, of commands with a mark of three
bytes before each piece, of the interpreter as JSON.
"""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from aiohttp import MultipartWriter, web

from tests.sandbox.backends.machines import Machine
from tests.sandbox.backends.running import running

KEY = "dtn_right"
_MARKS = (b"\x01\x01\x01", b"\x02\x02\x02")
Handler = Any


class DaytonaServer:
    """Serves machines; `created` are the bodies of the requests for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.machines: dict[str, Machine] = {}
        self.created: list[dict[str, Any]] = []
        self.activities = 0
        self._contexts: list[str] = []
        self._told: dict[str, dict[str, Any]] = {}
        self._commands: dict[str, asyncio.subprocess.Process] = {}
        self.url = ""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**28, middlewares=[_with_key])
        box, process = "/toolbox/{id}", "/toolbox/{id}/process"
        session = process + "/session/{session}"
        app.add_routes(
            [
                web.post("/api/sandbox", self._create),
                web.delete("/api/sandbox/{id}", self._delete),
                web.post("/api/sandbox/{id}/last-activity", self._activity),
                web.post(process + "/execute", self._execute),
                web.post(process + "/session", self._nothing),
                web.delete(session, self._nothing),
                web.post(session + "/exec", self._start),
                web.get(session + "/command/{command}/logs", self._logs),
                web.get(session + "/command/{command}", self._command),
                web.post(process + "/interpreter/context", self._context),
                web.delete(process + "/interpreter/context/{context}", self._delete_context),
                web.get(process + "/interpreter/execute", self._interpret),
                web.post(box + "/files/bulk-download", self._download),
                web.post(box + "/files/bulk-upload", self._upload),
            ]
        )
        return app

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.created.append(body)
        name = f"machine{len(self.machines) + 1}"
        self.machines[name] = Machine(self._folder / name)
        told = {
            "id": name,
            "organizationId": "o",
            "name": name,
            "user": "daytona",
            "env": {},
            "public": False,
        }
        told |= {"labels": body["labels"], "networkBlockAll": bool(body.get("networkBlockAll")), "kvm": False}
        told |= {
            "toolboxProxyUrl": f"{self.url}/toolbox",
            "target": "us",
            "cpu": 1,
            "gpu": 0,
            "memory": 1,
            "disk": 3,
            "state": "started",
        }
        self._told[name] = told
        return web.json_response(told)

    async def _delete(self, request: web.Request) -> web.Response:
        machine = self._machine(request)
        await machine.close()
        return web.json_response(self._told[request.match_info["id"]] | {"state": "destroyed"})

    async def _activity(self, request: web.Request) -> web.Response:
        self._machine(request)
        self.activities += 1
        return web.Response()

    async def _execute(self, request: web.Request) -> web.Response:
        asked = await request.json()
        code, printed = await self._machine(request).run("sh", "-c", asked["command"])
        return web.json_response({"exitCode": code, "result": printed})

    async def _nothing(self, request: web.Request) -> web.Response:
        return web.Response(status=201 if request.method == "POST" else 204)

    async def _start(self, request: web.Request) -> web.Response:
        asked = await request.json()
        session = request.match_info["session"]
        self._commands[session] = await self._machine(request).start("sh", "-c", asked["command"])
        return web.json_response({"cmdId": "c"}, status=202)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        process = self._commands[request.match_info["session"]]
        socket = web.WebSocketResponse()
        await socket.prepare(request)

        async def follow(stream: asyncio.StreamReader | None, mark: bytes) -> None:
            assert stream is not None
            while data := await stream.read(32_768):
                await socket.send_bytes(mark + data)

        await asyncio.gather(follow(process.stdout, _MARKS[0]), follow(process.stderr, _MARKS[1]))
        await process.wait()
        await socket.close()
        return socket

    async def _command(self, request: web.Request) -> web.Response:
        process = self._commands[request.match_info["session"]]
        return web.json_response({"id": "c", "command": "", "exitCode": process.returncode})

    async def _context(self, request: web.Request) -> web.Response:
        asked, number = await request.json(), len(self._contexts)
        self._contexts.append(asked["cwd"])
        told = {"id": str(number), "cwd": asked["cwd"], "language": "python", "active": True}
        return web.json_response(told | {"createdAt": "2026-11-22T00:00:00Z"})

    async def _delete_context(self, request: web.Request) -> web.Response:
        await self._machine(request).restart(request.match_info["context"])
        return web.json_response({"message": "deleted"})

    async def _interpret(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        asked = json.loads(await socket.receive_str())
        context = asked["contextId"]
        async for event in self._machine(request).execute(
            context, asked["code"], self._contexts[int(context)]
        ):
            await socket.send_str(json.dumps(event))
        await socket.close()
        return socket

    async def _download(self, request: web.Request) -> web.StreamResponse:
        asked = (await request.json())["paths"][0]
        path = self._machine(request).path(asked)
        with MultipartWriter("form-data", boundary="b") as writer:
            there = path.is_file()
            part = writer.append(path.read_bytes() if there else b"no such file")
            part.set_content_disposition("form-data", name="file" if there else "error", filename=asked)
        return web.Response(body=writer, headers=dict(writer.headers))

    async def _upload(self, request: web.Request) -> web.Response:
        machine = self._machine(request)
        path = ""
        async for part in await request.multipart():
            content = await part.read()
            if part.name.endswith(".path"):
                path = content.decode()
            else:
                machine.path(path).write_bytes(content)
        return web.Response()

    def _machine(self, request: web.Request) -> Machine:
        machine = self.machines[request.match_info["id"]]
        if machine.gone:
            raise web.HTTPNotFound(text=json.dumps({"message": "Sandbox not found", "statusCode": 404}))
        return machine


@web.middleware
async def _with_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.headers.get("Authorization") != f"Bearer {KEY}":
        return web.json_response({"message": "Unauthorized", "statusCode": 401}, status=401)
    return await handler(request)


def daytona_server(folder: Path) -> AbstractAsyncContextManager[DaytonaServer]:
    """Serve on loopback (see `running`)."""
    return running(DaytonaServer(folder))
