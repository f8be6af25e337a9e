"""Daytona's backend, by its own SDK, against a server on loopback that speaks its API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from maniple.config import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backends.daytona import DaytonaBackend, open_daytona
from maniple.sandbox.backends.remote import RemoteSession
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces
from tests.sandbox.backends.daytona_server import KEY, DaytonaServer, daytona_server

pytestmark = pytest.mark.anyio


def settings(server: DaytonaServer, **changes) -> SandboxSettings:
    values = {"backend": "daytona", "daytona_api_key": SecretStr(KEY), "daytona_api_url": f"{server.url}/api"}
    return SandboxSettings(**values | {"timeout_seconds": 20, "output_bytes": 4096} | changes)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[DaytonaServer]:
    async with daytona_server(tmp_path / "machines") as server:
        yield server


@pytest.fixture
async def backend(server: DaytonaServer) -> AsyncIterator[DaytonaBackend]:
    async with open_daytona(settings(server)) as backend:
        yield backend


@pytest.fixture
async def session(backend: DaytonaBackend, workspace: Workspace) -> AsyncIterator[RemoteSession]:
    session = await backend.start(workspace)
    yield session
    await session.stop()


@pytest.fixture
async def hasty(server: DaytonaServer, workspace: Workspace) -> AsyncIterator[RemoteSession]:
    """A session whose calls have one second."""
    async with open_daytona(settings(server, timeout_seconds=1)) as backend:
        session = await backend.start(workspace)
        yield session
        await session.stop()


async def test_a_file_that_is_too_large_is_named_and_stays_there(backend, tmp_path):
    small = Workspaces(tmp_path / "small", max_file_bytes=1000).open("thread")
    session = await backend.start(small)
    told = await session.run_bash("head -c 5000 /dev/zero > big; echo x > ok")
    await session.stop()
    assert "out of the sandbox: 'big'" in told.stderr
    assert small.files(10) == [("ok", 2)]


async def test_a_timeout_in_python_ends_it_and_reports_lost_variables(hasty):
    session = hasty
    await session.run_python("x = 1")
    told = await session.run_python("print('begun')\nimport time\ntime.sleep(60)")
    assert (told.timed_out, told.stdout) == (True, "begun\n")
    assert "imports are gone" in told.lost
    assert "NameError" in (await session.run_python("x")).stderr


async def test_a_timeout_in_bash_kills_the_command_and_what_it_started_and_keeps_variables(hasty):
    session = hasty
    await session.run_python("x = 1")
    told = await session.run_bash("(setsid sleep 6432; echo survived > survived) & sleep 6432")
    assert (told.timed_out, told.lost) == (True, "")
    assert (await session.run_bash("pgrep -fx 'sleep 6432'; ls")).stdout == ""
    assert (await session.run_python("x")).value == "1"


async def test_a_machine_that_the_service_has_ended_is_reported_and_not_used_again(server, session):
    await server.machines["machine1"].close()
    with pytest.raises(SandboxError, match="no such sandbox"):
        await session.run_bash("true")
    assert not session.is_alive


FIGURE = """
import sys
from types import SimpleNamespace
drawn = SimpleNamespace(savefig=lambda file, format: file.write(b"hello"))
plots = SimpleNamespace(get_fignums=lambda: [1], figure=lambda number: drawn, close=lambda which: None)
sys.modules["matplotlib.pyplot"] = plots
"""


async def test_a_figure_becomes_a_file_of_the_workspace(session, workspace):
    first, second = await session.run_python(FIGURE), await session.run_python("1")
    assert (first.images, second.images) == (("figures/figure-1.png",), ("figures/figure-2.png",))
    assert workspace.read("figures/figure-2.png", 10).content == b"hello"


async def test_a_sandbox_has_no_network_unless_hosts_are_named_and_comes_from_the_image(server, workspace):
    for changes in (
        {},
        {"network": "allowlist", "allow_hosts": ("pypi.org", "a.test"), "image": "debian:12"},
    ):
        async with open_daytona(settings(server, **changes)) as backend:
            await (await backend.start(workspace)).stop()
    closed, some = server.created
    assert closed["networkBlockAll"] is True
    assert some["domainAllowList"] == "pypi.org,a.test"
    assert "FROM debian:12" in some["buildInfo"]["dockerfileContent"]


async def test_a_sandbox_that_is_forgotten_ends_by_itself_soon_after_the_idle_time(server, session):
    assert (server.created[0]["autoStopInterval"], server.created[0]["autoDeleteInterval"]) == (11, 0)
    await session.run_bash("true")
    assert server.activities == 1


async def test_a_key_that_is_refused_is_reported_with_its_remedy(server, workspace):
    async with open_daytona(settings(server, daytona_api_key=SecretStr("wrong"))) as backend:
        with pytest.raises(SandboxError, match="correct DAYTONA_API_KEY"):
            await backend.start(workspace)


async def test_a_service_that_cannot_be_reached_is_reported(server, workspace):
    async with open_daytona(settings(server, daytona_api_url="http://127.0.0.1:9/api")) as backend:
        with pytest.raises(SandboxError, match="cannot be reached"):
            await backend.start(workspace)
