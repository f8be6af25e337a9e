"""What `maniple doctor` reports about MCP servers."""

import sys
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.doctor.checks import check_mcp
from maniple.config import Settings
from tests.mcp.open_servers import misbehaving

pytestmark = pytest.mark.anyio


def settings_of(home: Path, **servers: Any) -> Settings:
    return Settings.model_validate({"data_dir": home, "mcp": {"servers": servers}})


async def test_without_servers_nothing_is_reported(tmp_path: Path):
    assert await check_mcp(settings_of(tmp_path)) == []


async def test_each_server_is_named_with_its_state_and_a_dead_one_is_no_problem_for_the_team(tmp_path: Path):
    servers = {
        "bad": misbehaving(),
        "nobody": {"url": "http://127.0.0.1:9/mcp"},
        "off": misbehaving(disabled=True),
    }
    alive, dead = await check_mcp(settings_of(tmp_path, **servers))
    assert (alive.status, dead.status) == ("ok", "warning")
    assert alive.detail.startswith("bad (stdio): ")
    assert alive.detail.endswith(" tools; not used: bomb")
    assert dead.detail.startswith("nobody (http) is unreachable")
    assert "maniple mcp test nobody" in dead.remedy
    assert not (tmp_path / "mcp/accepted").exists()


async def test_what_the_servers_need_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    (found,) = await check_mcp(settings_of(tmp_path, time={"command": "x"}))
    assert found.status == "warning" and found.detail.endswith("not used: time")
    assert "pip install -e '.[mcp]'" in found.remedy
