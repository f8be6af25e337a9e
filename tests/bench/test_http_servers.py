"""The comparison of HTTP servers runs against maniple's own."""

import sys

import pytest

from bench.http_servers import ATTACKS, COMMANDS, OURS, attack, check_health, open_server, processes_below

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_a_server_is_started_and_attacked() -> None:
    with open_server(sys.executable, COMMANDS[OURS]) as (port, process, log):
        assert await check_health(port) is not None
        result = await attack(port, processes_below(process.pid), log, ATTACKS["slow bodies"], attackers=3)
    assert result.answer_seconds is not None
    assert result.cpu_seconds > 0
