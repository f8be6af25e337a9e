"""`maniple mcp login`: what a person sees of it."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import MANIPLE, environment, maniple, start
from tests.mcp.authority import Authority, closed_site

pytestmark = pytest.mark.anyio


def configured(folder: Path, url: str) -> dict[str, str]:
    servers = {"closed": {"url": url, "auth": "oauth"}, "open": {"url": url}}
    (folder / "conf.yaml").write_text(json.dumps({"mcp": {"servers": servers}}))
    return environment(folder, "http://127.0.0.1:9/v1")


async def test_a_person_is_shown_an_address_and_is_logged_in(tmp_path: Path):
    authority = Authority()
    async with closed_site(authority) as url:
        env = configured(tmp_path, url)
        process = await start(MANIPLE, "mcp", "login", "closed", "--no-browser", folder=tmp_path, env=env)
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"Open this address to log in:\n"
            address = (await process.stdout.readline()).decode().strip()
        async with httpx.AsyncClient(follow_redirects=True) as person:
            assert "This is done here" in (await person.get(address)).text
        async with asyncio.timeout(60):
            output, notes = await process.communicate()
        assert (process.returncode, output, notes) == (0, b"Logged in to closed.\n", b"")
        status, output, _ = await maniple("mcp", "test", "closed", "tokens", folder=tmp_path, env=env)
        assert (status, output) == (0, "*** ***\n")
    assert (tmp_path / "data/mcp/logins/closed.json").is_file()


@pytest.mark.parametrize("name", ["open", "nobody"])
async def test_servers_that_need_no_login_or_are_unreachable_are_named(tmp_path: Path, name):
    env = configured(tmp_path, "http://127.0.0.1:9/mcp")
    status, _, notes = await maniple("mcp", "login", name, folder=tmp_path, env=env)
    assert status == 2
    assert "auth: oauth. Such servers: closed." in " ".join(notes.split())


async def test_a_server_that_is_not_there_is_reported_in_words(tmp_path: Path):
    env = configured(tmp_path, "http://127.0.0.1:9/mcp")
    status, output, notes = await maniple("mcp", "login", "closed", folder=tmp_path, env=env)
    assert (status, output) == (1, "")
    assert "at closed failed: ConnectError" in notes
