"""E2B's backend, by its own SDK, against a server on loopback that speaks its API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from maniple.config import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backends.e2b import E2BBackend
from maniple.sandbox.backends.remote import RemoteSession
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces
from tests.sandbox.backends.e2b_server import KEY, E2BServer, e2b_server

pytestmark = pytest.mark.anyio


def settings(**changes) -> SandboxSettings:
    values = {"backend": "e2b", "e2b_api_key": SecretStr(KEY), "timeout_seconds": 20, "output_bytes": 4096}
    return SandboxSettings(**values | changes)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    async with e2b_server(tmp_path / "machines", monkeypatch) as server:
        yield server


@pytest.fixture
async def session(server: E2BServer, workspace: Workspace) -> AsyncIterator[RemoteSession]:
    session = await E2BBackend(settings()).start(workspace)
    yield session
    await session.stop()


async def test_a_file_that_is_too_large_is_named_and_stays_there(server, tmp_path):
    small = Workspaces(tmp_path / "small", max_file_bytes=1000).open("thread")
    session = await E2BBackend(settings()).start(small)
    told = await session.run_bash("head -c 5000 /dev/zero > big; echo x > ok")
    await session.stop()
    assert "out of the sandbox: 'big'" in told.stderr
    assert small.files(10) == [("ok", 2)]


async def test_a_timeout_in_python_ends_it_and_reports_lost_variables(server, workspace):
    session = await E2BBackend(settings(timeout_seconds=1)).start(workspace)
    await session.run_python("x = 1")
    told = await session.run_python("print('begun')\nimport time\ntime.sleep(60)")
    assert (told.timed_out, told.stdout) == (True, "begun\n")
    assert "imports are gone" in told.lost
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


async def test_a_machine_that_the_service_has_ended_is_reported_and_not_used_again(server, session):
    await server.machines["machine1"].close()
    with pytest.raises(SandboxError, match="no such sandbox"):
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
async def test_what_the_service_refuses_is_reported_with_its_remedy(server, workspace, changes, words):
    with pytest.raises(SandboxError, match=words):
        await E2BBackend(settings(**changes)).start(workspace)


async def test_a_service_that_cannot_be_reached_is_reported(workspace, monkeypatch):
    monkeypatch.setenv("E2B_API_URL", "http://127.0.0.1:9")
    with pytest.raises(SandboxError, match="cannot be reached"):
        await E2BBackend(settings()).start(workspace)
