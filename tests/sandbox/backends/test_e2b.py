"""E2B's backend, by its own SDK, against a server on loopback that speaks its API."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from maniple.config import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backends.e2b import E2BBackend
from maniple.sandbox.remote import RemoteSession
from maniple.sandbox.workspaces import Workspace, Workspaces
from tests.sandbox.backends.e2b_server import KEY, E2BServer, e2b_server

pytestmark = pytest.mark.anyio


def settings(**changes) -> SandboxSettings:
    values = {"backend": "e2b", "e2b_api_key": SecretStr(KEY), "timeout_seconds": 20, "output_bytes": 4096}
    return SandboxSettings(**values | changes)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    async with e2b_server(tmp_path / "machines") as server:
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        yield server


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("thread")


@pytest.fixture
async def session(server: E2BServer, workspace: Workspace) -> AsyncIterator[RemoteSession]:
    session = await E2BBackend(settings()).start(workspace)
    yield session
    await session.stop()


async def test_python_keeps_its_variables_and_tells_the_last_value(session):
    assert (await session.run_python("x = 20")).text() == "[no output; print what you want to see]"
    told = await session.run_python("print('hé')\nx + 1")
    assert (told.stdout, told.value, told.exit_code) == ("hé\n", "21", 0)


async def test_code_that_raises_is_a_result_with_its_trace(session):
    told = await session.run_python("1 / 0")
    assert told.exit_code == 1
    assert "ZeroDivisionError" in told.stderr


async def test_bash_tells_its_output_and_its_status_and_who_listens_hears_it(session):
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


async def test_a_file_that_is_too_large_is_named_and_stays_there(server, tmp_path):
    small = Workspaces(tmp_path / "small", max_file_bytes=1000).open("thread")
    session = await E2BBackend(settings()).start(small)
    told = await session.run_bash("head -c 5000 /dev/zero > big; echo x > ok")
    await session.stop()
    assert "not brought out of the sandbox: 'big'" in told.stderr
    assert small.files(10) == [("ok", 2)]


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


async def test_a_timeout_in_python_ends_it_and_says_that_variables_are_gone(server, workspace):
    session = await E2BBackend(settings(timeout_seconds=1)).start(workspace)
    await session.run_python("x = 1")
    told = await session.run_python("print('begun')\nimport time\ntime.sleep(60)")
    assert (told.timed_out, told.stdout) == (True, "begun\n")
    assert "variables and imports are gone" in told.lost
    assert "NameError" in (await session.run_python("x")).stderr
    await session.stop()


async def test_a_timeout_in_bash_kills_the_command_and_what_it_started_and_keeps_variables(server, workspace):
    session = await E2BBackend(settings(timeout_seconds=1)).start(workspace)
    await session.run_python("x = 1")
    told = await session.run_bash("(setsid sleep 6431; echo survived > survived) & sleep 6431")
    assert (told.timed_out, told.lost) == (True, "")
    assert (await session.run_bash("pgrep -fx 'sleep 6431'; ls")).stdout == ""
    assert (await session.run_python("x")).value == "1"
    await session.stop()


async def test_a_cancelled_call_ends_the_machine(server, session):
    begun = asyncio.Event()
    code = "print('begun')\nimport time\ntime.sleep(60)"
    call = asyncio.create_task(session.run_python(code, on_output=lambda *_: begun.set()))
    async with asyncio.timeout(20):
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


async def test_a_machine_that_the_service_has_ended_is_told_and_not_used_again(server, session):
    await server.machines["machine1"].close()
    with pytest.raises(SandboxError, match="no such sandbox any more"):
        await session.run_bash("true")
    assert not session.is_alive


async def test_a_figure_becomes_a_file_of_the_workspace(session, workspace):
    code = "class Figure:\n  png = 'aGVsbG8='\nFigure()"
    first, second = await session.run_python(code), await session.run_python(code)
    assert (first.images, second.images) == (("figures/figure-1.png",), ("figures/figure-2.png",))
    assert workspace.read("figures/figure-2.png", 10).content == b"hello"


async def test_a_machine_has_no_network_unless_hosts_are_named(server, workspace):
    for changes in ({}, {"network": "allowlist", "allow_hosts": ("pypi.org",)}):
        await (await E2BBackend(settings(**changes)).start(workspace)).stop()
    closed, some = server.created
    assert closed["allow_internet_access"] is False
    assert some["network"] == {"allowOut": ["pypi.org"], "denyOut": ["0.0.0.0/0"]}


async def test_a_machine_that_is_forgotten_ends_by_itself_soon_after_the_idle_time(server, session):
    assert server.created[0]["timeout"] == 680
    await session.run_bash("true")
    assert server.lifetimes == [680]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"e2b_api_key": SecretStr("wrong")}, "correct E2B_API_KEY"),
        ({"template": "missing"}, "Correct `sandbox.template`"),
        ({"template": "full"}, "lower `sandbox.concurrent`"),
    ],
)
async def test_what_the_service_refuses_is_told_with_its_remedy(server, workspace, changes, words):
    with pytest.raises(SandboxError, match=words):
        await E2BBackend(settings(**changes)).start(workspace)


async def test_a_service_that_cannot_be_reached_is_told(workspace, monkeypatch):
    monkeypatch.setenv("E2B_API_URL", "http://127.0.0.1:9")
    with pytest.raises(SandboxError, match="cannot be reached"):
        await E2BBackend(settings()).start(workspace)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_works_on_the_servers_own_event_loop(session, workspace):
    assert (await session.run_python("x = 2\nx")).value == "2"
    told = await session.run_bash("head -c 300000 /dev/zero | tr '\\0' x; echo x > file; echo last")
    assert told.stdout.endswith("xlast\n")
    assert workspace.files(9) == [("file", 2)]
