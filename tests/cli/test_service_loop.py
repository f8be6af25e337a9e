"""The event loop of services: uvloop's where it is installed, else asyncio's."""

import asyncio
import sys

import pytest
import uvloop

from maniple.cli.doctor.checks import check_python
from maniple.cli.process import new_service_loop, run_to_status


def _loop_of_a_service() -> type[asyncio.AbstractEventLoop]:
    used: list[type[asyncio.AbstractEventLoop]] = []

    async def work() -> int:
        used.append(type(asyncio.get_running_loop()))
        return 3

    assert run_to_status(work(), new_service_loop) == 3
    return used[0]


def test_a_service_runs_on_uvloop() -> None:
    assert _loop_of_a_service() is uvloop.Loop
    assert "uvloop" in check_python().detail


def test_a_service_runs_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert not issubclass(_loop_of_a_service(), uvloop.Loop)
    assert "asyncio" in check_python().detail


def test_a_command_in_the_terminal_runs_on_asyncios_loop() -> None:
    used: list[type[asyncio.AbstractEventLoop]] = []

    async def work() -> int:
        used.append(type(asyncio.get_running_loop()))
        return 0

    assert run_to_status(work()) == 0
    assert not issubclass(used[0], uvloop.Loop)
