"""Docker's backend, by its client, against a server on a unix socket that speaks the engine's API."""

import asyncio
import os
import platform
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.config import SandboxSettings
from maniple.errors import SandboxError, Unavailable
from maniple.sandbox.backend import SandboxSession
from maniple.sandbox.backends.docker import DockerBackend, open_docker
from maniple.sandbox.factory import _sees_files, open_backend
from maniple.workspace.files import Workspace
from tests.sandbox.backends.docker_server import Container, DockerServer, docker_server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[tuple[DockerServer, SandboxSettings]]:
    async with docker_server(tmp_path) as (server, address):
        yield (
            server,
            SandboxSettings(backend="docker", docker_host=address, timeout_seconds=20, output_bytes=4096),
        )


@pytest.fixture
async def backend(engine: tuple[DockerServer, SandboxSettings]) -> AsyncIterator[DockerBackend]:
    async with open_docker(engine[1]) as backend:
        yield backend


@pytest.fixture
async def session(backend: DockerBackend, workspace: Workspace) -> AsyncIterator[SandboxSession]:
    session = await backend.start(workspace)
    yield session
    await session.stop()


async def test_python_keeps_variables_and_shares_its_files_with_bash_and_the_host(session, workspace):
    await session.write("in.txt", b"host")
    await session.run_python("x = open('in.txt').read()\nopen('out.txt', 'w').write(x * 2)")
    told = await session.run_bash("cat out.txt; echo err >&2; exit 3")
    assert (told.stdout, told.stderr, told.exit_code) == ("hosthost", "err\n", 3)
    assert (await session.run_python("x")).value == "'host'"
    assert workspace.read("out.txt", 99).content == b"hosthost"


async def test_a_listener_receives_output_before_the_call_ends(session, tmp_path):
    heard = asyncio.Event()
    # The container's processes are the host's here: the call ends only after its first line was received.
    go = tmp_path / "go"
    command = f"echo first; until [ -e {go} ]; do sleep 0.02; done; echo last"
    call = asyncio.create_task(session.run_bash(command, on_output=lambda *_: heard.set()))
    async with asyncio.timeout(60):
        await heard.wait()
    assert not call.done()
    go.touch()
    assert (await call).stdout == "first\nlast\n"


async def test_output_of_one_call_is_whole_and_none_of_it_is_in_the_next(session):
    told = await session.run_bash("head -c 3000000 /dev/zero | tr '\\0' x; echo last")
    assert told.stdout.endswith("xlast\n")
    assert (await session.run_bash("echo next")).stdout == "next\n"


async def test_a_cancelled_call_removes_the_container_and_all_that_ran_in_it(engine, session):
    begun = asyncio.Event()
    call = asyncio.create_task(session.run_bash("echo; sleep 600", on_output=lambda *_: begun.set()))
    async with asyncio.timeout(60):
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert engine[0].containers == {}
    assert not session.is_alive


async def test_stopping_removes_the_container_and_twice_is_nothing(engine, session):
    await session.stop()
    await session.stop()
    assert engine[0].removed == ["container1"]


async def test_a_container_that_ends_under_way_is_reported_and_the_session_is_over(engine, session):
    begun = asyncio.Event()
    call = asyncio.create_task(session.run_bash("echo; sleep 600", on_output=lambda *_: begun.set()))
    await begun.wait()
    await engine[0].remove(engine[0].containers["container1"])
    async with asyncio.timeout(60):
        assert "background processes are gone" in (await call).lost
    assert not session.is_alive


async def test_the_container_has_no_network_no_rights_and_no_more_than_its_limits(engine, session, workspace):
    description = engine[0].containers["container1"].description
    host = description["HostConfig"]
    assert description["NetworkDisabled"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Memory"] == host["MemorySwap"] == 512 * 1024 * 1024
    assert host["PidsLimit"] == 67
    assert host["Binds"] == [f"{workspace.path}:/workspace:rw"]
    assert host["AutoRemove"]
    uid = os.getuid() or 65533
    assert description["User"].startswith(f"{uid}:")
    assert not any("KEY" in entry for entry in description["Env"])


@pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {"use_uvloop": uses}) for uses in (False, True)], ids=["asyncio", "uvloop"]
)
async def test_the_container_ends_when_its_server_hangs_up(engine, backend, session):
    ended = engine[0].containers["container1"].process.wait()
    await backend._docker.close()
    async with asyncio.timeout(60):
        await ended


async def test_containers_of_servers_that_are_no_more_are_removed_at_the_start(engine, tmp_path):
    server, settings = engine
    node, alive = platform.node(), start_of_this_process()
    marks = {
        "dead": f"{node}/999999999/1",
        "other-start": f"{node}/{os.getpid()}/1",
        "alive": f"{node}/{os.getpid()}/{alive}",
        "elsewhere": "other-machine/999999999/1",
    }
    for name, mark in marks.items():
        server.containers[name] = Container(name, {"Labels": {"maniple.server": mark}}, tmp_path)
    async with open_docker(settings):
        assert sorted(server.removed) == ["dead", "other-start"]


def start_of_this_process() -> str:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize(
    ("image", "words"),
    [("missing:1", "docker pull missing:1"), ("broken", "python3: not found")],
)
async def test_an_image_that_does_not_do_is_reported(engine, workspace, image, words):
    async with open_docker(engine[1].model_copy(update={"image": image})) as backend:
        with pytest.raises(SandboxError, match=words):
            await backend.start(workspace)
    assert engine[0].containers == {}


@pytest.mark.parametrize(
    "host", ["unix:///nowhere/docker.sock", "tcp://me:canary@127.0.0.1:9", "smoke://signals"]
)
async def test_an_engine_that_cannot_be_reached_is_reported_without_its_password(host):
    with pytest.raises(SandboxError, match="DOCKER_HOST") as caught:
        async with open_docker(SandboxSettings(backend="docker", docker_host=host)):
            pass
    assert "canary" not in str(caught.value)


async def test_an_engine_whose_containers_hold_is_taken(engine):
    async with open_backend(engine[1].model_copy(update={"image": "holding"})) as backend:
        assert isinstance(backend, DockerBackend), str(backend)
        assert not backend.mirrors
    assert engine[0].containers == {}


async def test_an_engine_without_isolation_is_refused_with_the_failed_checks(engine):
    with pytest.raises(Unavailable) as refused:
        await open_backend(engine[1]).__aenter__()
    for words in ("container of this engine could", "TCP port of the host", "docs/sandbox.md"):
        assert words in str(refused.value)


async def test_an_engine_that_cannot_limit_memory_is_refused(engine):
    engine[0].info["MemoryLimit"] = False
    with pytest.raises(Unavailable, match="more memory than its limit"):
        await open_backend(engine[1]).__aenter__()


async def test_an_engine_on_another_machine_gets_the_files_and_gives_them_back(backend, workspace):
    backend.mirrors = True
    session = await backend.start(workspace)
    await session.write("data/in.txt", b"host")
    await session.run_python("x = open('data/in.txt').read()")
    told = await session.run_bash(
        "cat data/in.txt > out.txt; rm data/in.txt; head -c 20000000 /dev/zero > big"
    )
    await session.stop()
    assert workspace.read("out.txt", 99).content == b"host"
    assert [path for path, _ in workspace.files(9)] == ["out.txt"]
    assert "'big' has more than" in told.stderr


async def test_an_engine_that_does_not_see_our_files_is_noticed(engine, backend):
    engine[0].blind = True
    assert not await _sees_files(backend)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_works_on_the_servers_own_event_loop(session):
    assert (await session.run_python("x = 2\nx")).value == "2"
    told = await session.run_bash("head -c 3000000 /dev/zero | tr '\\0' x; echo last")
    assert told.stdout.endswith("xlast\n")
