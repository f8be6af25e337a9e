"""Whether code that fills sockets is noticed at the start, and how often that is tried."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import Unavailable
from maniple.sandbox import Sandbox, open_sandbox, socket_probe
from maniple.sandbox.socket_memory import SocketBounds
from maniple.sandbox.watchdog import WatchedBackend

pytestmark = pytest.mark.anyio


Opened = Callable[[SandboxSettings, Path | None], Awaitable[Sandbox]]


@pytest.fixture
def opened(passed_probes: set[object]) -> Iterator[Opened]:
    """Opens a sandbox as a new server does: nothing that passed is known but by its folder."""

    async def open_once(settings: SandboxSettings, cache_dir: Path | None) -> Sandbox:
        passed_probes.clear()
        async with open_sandbox(settings, cache_dir=cache_dir) as sandbox:
            return sandbox

    yield open_once
    passed_probes.clear()


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of sockets that code has tried to fill, in their order."""
    kinds: list[str] = []
    attempt: Callable[..., Any] = socket_probe._holds_too_much

    async def noted(backend: Any, workspaces: Any, kind: str, memory_mb: int) -> bool:
        kinds.append(kind)
        return await attempt(backend, workspaces, kind, memory_mb)

    monkeypatch.setattr(socket_probe, "_holds_too_much", noted)
    return kinds


def _count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SocketBounds, "bytes_per_socket", lambda *_: 0)


async def test_a_watchdog_that_overlooks_sockets_is_refused_with_their_kinds(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _count_nothing(monkeypatch)
    with pytest.raises(Unavailable) as found:
        await opened(SandboxSettings(), tmp_path)
    assert all(f"({kind})" in str(found.value) for kind in ("stream", "datagram", "tcp")), found.value
    monkeypatch.undo()
    assert isinstance(await opened(SandboxSettings(), tmp_path), Sandbox), "a failure is not remembered"


async def test_the_attempts_take_at_most_twice_the_limit(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _count_nothing(monkeypatch)
    said: list[str] = []
    start: Callable[..., Any] = WatchedBackend.start

    async def started(backend: WatchedBackend, workspace: Any) -> Any:
        session = await start(backend, workspace)
        run = session.run_python

        async def listened(code: str) -> Any:
            completed = await run(code.replace('print("held")', "print(held, limit)"))
            said.append(completed.stdout.splitlines()[0])
            return completed

        session.run_python = listened
        return session

    monkeypatch.setattr(WatchedBackend, "start", started)
    with pytest.raises(Unavailable):
        await opened(SandboxSettings(), tmp_path)
    assert len(said) == 3
    for held, limit in (map(int, line.split()) for line in said):
        assert limit < held <= 2.1 * limit


@pytest.mark.slow
async def test_a_machine_that_passed_is_tried_again_only_when_something_has_changed(
    opened: Opened, tmp_path: Path, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, other_boot = tmp_path / "cache", tmp_path / "boot_id"
    await asyncio.to_thread(other_boot.write_text, "another\n")
    for _ in range(2):
        assert isinstance(await opened(SandboxSettings(), cache), Sandbox)
        assert sorted(tried) == ["datagram", "stream", "tcp"]
    await opened(SandboxSettings(memory_mb=100), cache)
    assert len(tried) == 6
    monkeypatch.setattr(socket_probe, "_BOOT", other_boot)
    await opened(SandboxSettings(), cache)
    assert len(tried) == 9
    assert len(list((cache / "sandbox-probes").iterdir())) == 1, "marks of earlier starts are removed"


@pytest.mark.slow
async def test_without_a_folder_each_start_tries(opened: Opened, tried: list[str]) -> None:
    for _ in range(2):
        await opened(SandboxSettings(), None)
    assert len(tried) == 6


async def test_a_folder_that_cannot_be_written_prevents_nothing(
    opened: Opened, tmp_path: Path, tried: list[str]
) -> None:
    file = tmp_path / "file"
    await asyncio.to_thread(file.touch)
    assert isinstance(await opened(SandboxSettings(), file), Sandbox)
    assert len(tried) == 3
