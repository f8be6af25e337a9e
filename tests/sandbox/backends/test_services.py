"""What the services' backends have in common, each by its own SDK against a server on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from maniple.errors import SandboxError
from maniple.sandbox.backends.daytona import open_daytona
from maniple.sandbox.backends.e2b import E2BBackend
from maniple.sandbox.backends.remote import RemoteSession
from maniple.workspace.files import Workspace
from tests.sandbox.backends import test_daytona, test_e2b
from tests.sandbox.backends.daytona_server import daytona_server
from tests.sandbox.backends.e2b_server import e2b_server

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def daytona(folder: Path, _: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, Any]]:
    async with daytona_server(folder) as server, open_daytona(test_daytona.settings(server)) as backend:
        yield server, backend


@asynccontextmanager
async def e2b(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, Any]]:
    async with e2b_server(folder, monkeypatch) as server:
        yield server, E2BBackend(test_e2b.settings())


@pytest.fixture(params=[daytona, e2b])
async def service(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, Any]]:
    async with request.param(tmp_path / "machines", monkeypatch) as service:
        yield service


@pytest.fixture
def server(service: tuple[Any, Any]) -> Any:
    return service[0]


@pytest.fixture
async def session(service: tuple[Any, Any], workspace: Workspace) -> AsyncIterator[RemoteSession]:
    session = await service[1].start(workspace)
    yield session
    await session.stop()


async def test_python_keeps_its_variables_and_reports_the_last_value(session):
    assert (await session.run_python("x = 20")).text().startswith("[no output; ")
    told = await session.run_python("print('hé')\nx + 1")
    assert (told.stdout, told.value, told.exit_code) == ("hé\n", "21", 0)


async def test_code_that_raises_is_a_result_with_its_trace(session):
    told = await session.run_python("1 / 0")
    assert told.exit_code == 1
    assert "ZeroDivisionError" in told.stderr


async def test_bash_reports_output_and_status_and_streams_to_a_listener(session):
    heard = []
    told = await session.run_bash("echo out; echo err >&2; exit 3", on_output=lambda *one: heard.append(one))
    assert (told.stdout, told.stderr, told.exit_code) == ("out\n", "err\n", 3)
    assert set(heard) == {("stdout", "out\n"), ("stderr", "err\n")}


async def test_files_of_the_host_are_there_and_what_code_writes_comes_back(session, workspace):
    workspace.write("data/in.txt", b"host")
    await session.run_bash("cat data/in.txt > out.txt; echo new >> out.txt")
    assert workspace.read("out.txt", 100).content == b"hostnew\n"
    assert (await session.run_python("print(open('out.txt').read())")).stdout == "hostnew\n\n"


async def test_what_the_host_changes_between_calls_wins_and_nothing_else_is_sent_again(
    session, workspace, server
):
    await session.run_bash("echo one > a; echo two > b")
    await session.write("a", b"host\n")
    await session.run_bash("cat a b > c")
    assert workspace.read("c", 100).content == b"host\ntwo\n"


async def test_files_that_code_removes_are_removed_on_the_host(session, workspace):
    await session.write("a", b"x")
    await session.run_bash("rm a; touch b")
    assert [path for path, _ in await session.list(10)] == ["b"]


async def test_links_of_the_machine_are_not_brought_to_the_host(session, workspace):
    await session.run_bash("ln -s /etc/passwd link; mkfifo pipe; echo x > real")
    assert [path for path, _ in await session.list(10)] == ["real"]


async def test_output_over_the_limit_keeps_head_and_tail(session):
    told = await session.run_bash("echo first; head -c 100000 /dev/zero | tr '\\0' x; echo last")
    assert told.stdout.startswith("first")
    assert told.stdout.endswith("last\n")
    assert "bytes cut" in told.stdout
    assert len(told.stdout) < 5000


async def test_endless_output_is_stopped_long_before_the_time_is_up(session):
    told = await session.run_bash("yes")
    assert "it printed more than" in told.stderr
    assert told.seconds < 15


async def test_a_cancelled_call_ends_the_machine(server, session):
    begun = asyncio.Event()
    code = "print('begun')\nimport time\ntime.sleep(60)"
    call = asyncio.create_task(session.run_python(code, on_output=lambda *_: begun.set()))
    async with asyncio.timeout(60):
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    machine = server.machines["machine1"]
    assert machine.gone
    assert not machine.processes()
    assert not session.is_alive


async def test_stopping_ends_the_machine_and_twice_is_nothing(server, session):
    await session.stop()
    await session.stop()
    assert server.machines["machine1"].gone
    with pytest.raises(SandboxError, match="has ended"):
        await session.run_bash("true")


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_works_on_the_servers_own_event_loop(session, workspace):
    assert (await session.run_python("x = 2\nx")).value == "2"
    told = await session.run_bash("head -c 300000 /dev/zero | tr '\\0' x; echo x > file; echo last")
    assert told.stdout.endswith("xlast\n")
    assert workspace.files(9) == [("file", 2)]
