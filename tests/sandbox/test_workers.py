"""How a worker is brought into the sandbox."""

import importlib.util
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox import worker_session
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.host import HostPrograms, find_programs
from maniple.sandbox.worker_session import compile_worker
from maniple.workspace import Workspace
from tests.sandbox.host import as_process_one

pytestmark = pytest.mark.anyio


async def test_a_python_that_reads_what_ours_compiles_gets_the_worker_compiled() -> None:
    files = compile_worker(sys.executable, "/somewhere")
    assert list(files) == ["worker.pyc", "interpreter.pyc"]
    assert all(content.startswith(importlib.util.MAGIC_NUMBER) for content in files.values())


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
async def test_any_other_gets_its_text(python: str) -> None:
    files = compile_worker(python, "/somewhere")
    assert list(files) == ["worker.py", "interpreter.py"]
    assert all(b"def " in content for content in files.values())


async def test_the_text_works_as_well_and_its_frames_are_in_no_traceback(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_session, "_magic_number", lambda python: b"")
    programs = find_programs(None)
    assert isinstance(programs, HostPrograms)
    session = await BubblewrapBackend(SandboxSettings(), programs).start(workspace)
    try:
        assert (await session.run_python("6 * 7")).value == "42"
        trace = (await session.run_python("1 / 0")).stderr
    finally:
        await session.stop()
    assert trace.count("File ") == 1


@pytest.fixture
def few_descriptors() -> Iterator[Callable[[int], None]]:
    """Let this process open only so many descriptors more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow(more: int) -> None:
        taken = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
        free = [number for number in range(before[0]) if number not in taken]
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[more], before[1]))

    yield allow
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_server_without_free_descriptors_reports_it_and_leaks_none(
    workspace: Workspace, few_descriptors: Callable[[int], None]
) -> None:
    programs = find_programs(None)
    assert isinstance(programs, HostPrograms)
    backend = BubblewrapBackend(SandboxSettings(), programs)
    before = open_descriptors()
    started = 0
    with as_process_one() as children:
        for more in range(20):
            few_descriptors(more)
            try:
                session = await backend.start(workspace)
            except SandboxError as error:
                assert "could not be started" in str(error)
            else:
                started += 1
                await session.stop()
            few_descriptors(50)
            assert open_descriptors() == before
            assert children() == []
    assert 0 < started < 20


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
