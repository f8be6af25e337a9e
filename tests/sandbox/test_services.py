"""Programs of others, in the sandbox: what they see, what they may use up, and their end."""

import asyncio
import json
import os
import venv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import EgressRoute
from maniple.errors import SandboxError
from maniple.sandbox.backends.local import start_unprotected
from maniple.sandbox.bubblewrap import ServiceLauncher, ServiceSpec, open_service_launcher
from maniple.sandbox.processes import PipedProgram
from tests.mcp.open_servers import until

pytestmark = pytest.mark.anyio

PYTHON = "/usr/bin/python3"
SECONDS = 1_000_000 + os.getpid()
"""The seconds of a sleep that no other process on this machine starts."""


@pytest.fixture
async def services(anyio_backend: str) -> AsyncIterator[ServiceLauncher]:
    async with open_service_launcher(SandboxSettings(), None) as found:
        yield found


async def answer(program: PipedProgram) -> str:
    """Return all that it says; its last words are in the error when that is nothing."""
    try:
        async with asyncio.timeout(60):
            said = (await program.reader.read()).decode()
            await program.ended
        assert said, program.take_errors()
        return said
    finally:
        await program.stop()


def service(tmp_path: Path, code: str, **more: Any) -> ServiceSpec:
    return ServiceSpec([PYTHON, "-I", "-c", code], tmp_path / "home", more.pop("environment", {}), **more)


async def test_it_sees_its_own_folder_what_is_named_and_nothing_else(
    services: ServiceLauncher, tmp_path: Path
):
    for name in ("shown", "hidden", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    code = f"""
import os, json
print(json.dumps([os.getcwd(), os.environ["HOME"], sorted(os.listdir({str(tmp_path)!r})),
    os.access({str(tmp_path / "shown")!r}, os.W_OK), os.path.exists("/etc/shadow"), os.listdir()]))
"""
    reads, writes = [tmp_path / "shown"], [tmp_path / "open"]
    program = await services.start(service(tmp_path, code, reads=reads, writes=writes))
    assert json.loads(await answer(program)) == [
        "/workspace",
        "/workspace",
        ["open", "shown"],
        False,
        False,
        [],
    ]


async def test_what_it_writes_into_its_folder_is_retained(services: ServiceLauncher, tmp_path: Path):
    await answer(await services.start(service(tmp_path, "open('a', 'w').write('kept'); print(1)")))
    assert await answer(await services.start(service(tmp_path, "print(open('a').read())"))) == "kept\n"


async def test_a_program_of_a_virtual_environment_finds_its_python(services: ServiceLauncher, tmp_path: Path):
    # The Python of these tests: often under a home that only its owner can enter.
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    argv = [str(environment / "bin" / "python"), "-c", "import json, sys; print(sys.prefix)"]
    program = await services.start(ServiceSpec(argv, tmp_path / "home", {}))
    assert await answer(program) == f"{environment}\n"


async def test_its_variables_are_those_of_the_settings_and_are_in_no_command_line(
    services: ServiceLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_SERVER", "canary-in-the-environment")
    code = "import os, json; print(json.dumps(dict(os.environ)), flush=True); input()"
    program = await services.start(service(tmp_path, code, environment={"TOKEN": "canary-of-settings"}))
    found = json.loads(await program.reader.readline())
    lines = [line for line in _command_lines() if b"canary-of-settings" in line]
    await program.stop()
    assert (found["TOKEN"], lines) == ("canary-of-settings", [])
    assert "OF_THE_SERVER" not in found


async def test_it_reaches_no_host_without_being_allowed_to(services: ServiceLauncher, tmp_path: Path):
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = f"""
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 2)
    print("reached")
except OSError as error:
    print("refused")
"""
    assert await answer(await services.start(service(tmp_path, code))) == "refused\n"
    server.close()


async def test_it_reaches_the_hosts_that_are_named_and_no_others(tmp_path: Path):
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def resolve(host: str, port: int) -> str:
        return "127.0.0.1"

    code = f"""
import urllib.request
for host in ("named.test:{port}", "other.test:{port}"):
    try:
        print(urllib.request.urlopen("http://" + host + "/", timeout=60).read().decode())
    except OSError as error:
        print(error.code)
"""
    leads = EgressRoute(resolve, asyncio.open_connection)
    async with open_service_launcher(SandboxSettings(), leads) as services:
        program = await services.start(service(tmp_path, code, allow_hosts=[f"named.test:{port}"]))
        assert await answer(program) == "hello\n403\n"
    server.close()


async def test_too_much_memory_ends_it_with_a_reason(services: ServiceLauncher, tmp_path: Path):
    code = "x = bytearray(300_000_000); print('had it', flush=True); input()"
    program = await services.start(service(tmp_path, code, memory_mb=100))
    async with asyncio.timeout(60):
        await program.reader.read()
    assert "100 MB of memory" in program.reason
    await program.stop()


async def test_nothing_of_it_is_left_when_it_is_stopped(services: ServiceLauncher, tmp_path: Path):
    child = f"import subprocess; subprocess.Popen(['sleep', '{SECONDS}'], start_new_session=True)"
    code = f"{child}; print(1, flush=True); input()"
    program = await services.start(service(tmp_path, code))
    await program.reader.readline()
    await until(lambda: _sleepers() == 1)
    await program.stop()
    await program.stop()
    assert _sleepers() == 0


async def test_a_folder_that_is_not_there_is_reported(services: ServiceLauncher, tmp_path: Path):
    with pytest.raises(SandboxError, match=r"/nowhere does not exist"):
        await services.start(service(tmp_path, "pass", reads=[tmp_path / "nowhere"]))


@pytest.mark.parametrize(
    ("command", "cwd", "words"),
    [
        (
            "python",
            False,
            r"no program python in the sandbox, whose PATH is /usr/.*\. Write python3\.",
        ),
        (
            "elsewhere",
            False,
            r"On this machine it is /\S+/elsewhere: write that as command",
        ),
        ("nowhere", False, r"Install it there, or write its whole path\."),
        ("./script.py", False, r"\./script\.py is relative to cwd"),
        ("./none.py", True, r"There is no program /\S+/none\.py\."),
        ("./script.py", True, r"/script\.py is not executable\. Make it so \(chmod \+x"),
        ("/usr/bin/none", False, r"There is no program /usr/bin/none\."),
    ],
)
async def test_a_command_that_the_sandbox_cannot_start_is_reported_with_what_to_do(
    services: ServiceLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command, cwd, words
):
    (tmp_path / "script.py").write_text("print(1)")
    (tmp_path / "elsewhere").write_text("#!/bin/sh\n")
    (tmp_path / "elsewhere").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=words):
        await services.start(ServiceSpec([command], tmp_path / "home", {}, cwd=tmp_path if cwd else None))


async def test_a_command_of_a_path_that_is_shown_is_found(services: ServiceLauncher, tmp_path: Path):
    place = tmp_path / "programs"
    place.mkdir()
    (place / "mine").write_text("#!/bin/sh\necho here\n")
    (place / "mine").chmod(0o755)
    home, there = tmp_path / "home", {"PATH": f"{place}:/usr/bin:/bin"}
    assert await answer(await services.start(ServiceSpec(["mine"], home, there, reads=[place]))) == "here\n"
    with pytest.raises(SandboxError, match="no program mine"):
        await services.start(ServiceSpec(["mine"], home, there))


async def test_one_without_a_sandbox_is_given_where_things_are_and_ends_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_SERVER", "canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:8080")
    script = f"sleep {SECONDS} & pwd; env; echo end; cat"
    program = await start_unprotected(ServiceSpec(["sh", "-c", script], tmp_path / "home", {"A": "b"}))
    said = (await program.reader.readuntil(b"end\n")).decode()
    assert said.startswith(f"{tmp_path}/home\n")
    assert "A=b\n" in said
    assert "HTTPS_PROXY=http://proxy.example:8080\n" in said
    assert "canary" not in said
    await until(lambda: _sleepers() == 1)
    await program.stop()
    assert _sleepers() == 0


def _sleepers() -> int:
    return sum(line == f"sleep\0{SECONDS}\0".encode() for line in _command_lines())


def _command_lines() -> list[bytes]:
    found: list[bytes] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes())
        except OSError:
            continue
    return found
