"""Servers that want a person to log in: once, in a browser, and what comes of it."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from maniple.config import McpServerSettings
from maniple.errors import McpError
from maniple.mcp import LoginStore
from maniple.mcp.http_transport import log_in
from maniple.shared_texts import TextFolder
from tests.mcp.authority import Authority, closed_site
from tests.mcp.open_servers import opened, until
from tests.mcp.web import site

pytestmark = pytest.mark.anyio
NEEDED = "it requires a login. Run: maniple mcp login closed"


class Browser:
    """Goes where it is sent, as a person's does, and notes what it was shown there."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self._going: asyncio.Task[None] | None = None

    async def show(self, address: str) -> None:
        self._going = asyncio.create_task(self._go(address))

    async def _go(self, address: str) -> None:
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as client:
            self.pages.append((await client.get(address)).text)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def url(authority: Authority) -> AsyncIterator[str]:
    async with closed_site(authority) as address:
        yield address


def settings(url: str) -> dict[str, str]:
    return {"url": url, "auth": "oauth"}


async def logged_in(url: str, folder: Path, **more: str) -> Browser:
    browser = Browser()
    server = McpServerSettings.model_validate(settings(url) | more)
    await log_in("closed", server, LoginStore(TextFolder(folder / "logins")), browser.show)
    return browser


def stored_logins(folder: Path) -> dict:
    return json.loads((folder / "logins/closed.json").read_text())


async def test_who_logged_in_once_uses_the_server(tmp_path: Path, url, authority):
    browser = await logged_in(url, tmp_path)
    assert browser.pages == ["This is done here. You can close the page and go back to the terminal."]
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert found.list_tools() == ["closed__tokens"]
    assert len(authority.clients) == 1


async def test_a_client_that_is_described_by_a_document_needs_no_registration(tmp_path: Path):
    described = {"client_id_document": "https://team.example/maniple.json"}
    authority = Authority(document=described["client_id_document"])
    async with closed_site(authority) as url:
        with pytest.raises(McpError):
            await logged_in(url, tmp_path)
        await logged_in(url, tmp_path, **described)
        async with opened(tmp_path, {"closed": settings(url) | described}) as found:
            assert found.list_tools() == ["closed__tokens"]
    assert {one.client_id for one in authority.access.values()} == {authority.document}
    assert authority.clients == {}


@pytest.mark.parametrize("wrong", ["http://team.example/a.json", "https://team.example/", "maniple.json"])
def test_a_document_has_an_https_address_with_a_path(wrong: str):
    for more in (
        {"auth": "oauth", "client_id_document": wrong},
        {"client_id_document": "https://a.example/b"},
    ):
        with pytest.raises(ValidationError):
            McpServerSettings.model_validate({"url": "https://a.example/mcp", **more})


async def test_no_token_comes_back_to_a_model(tmp_path: Path, url):
    await logged_in(url, tmp_path)
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert (await found.call("closed__tokens")).text == "*** ***"


async def test_without_a_login_the_server_is_off_and_the_words_name_the_command(tmp_path, url, authority):
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert found.obstacle("closed") == NEEDED
        assert found.list_tools() == []
    assert authority.clients == {}


async def test_stored_logins_are_private_to_their_owner(tmp_path: Path, url):
    await logged_in(url, tmp_path)
    file = tmp_path / "logins/closed.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {one.name for one in file.parent.iterdir()} == {"closed.json", "closed.lock"}


async def test_tokens_that_ended_are_refreshed_also_by_the_next_program(tmp_path: Path, url, authority):
    await logged_in(url, tmp_path)
    before = stored_logins(tmp_path)
    (tmp_path / "logins/closed.json").write_text(json.dumps({**before, "expires_at": 1.0}))
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert found.list_tools() == ["closed__tokens"]
    assert authority.refresh_owner == 1
    assert stored_logins(tmp_path)["tokens"] != before["tokens"]
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert found.list_tools() == ["closed__tokens"]
    assert authority.refresh_owner == 1


async def test_a_login_that_was_revoked_turns_the_server_off_until_the_next_one(tmp_path, url, authority):
    await logged_in(url, tmp_path)
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        authority.forget()
        with pytest.raises(McpError, match="closed"):
            await found.call("closed__tokens")
        await until(lambda: found.obstacle("closed") == NEEDED)
        assert len(authority.clients) == 1
        await logged_in(url, tmp_path)
        await until(lambda: found.list_tools() == ["closed__tokens"])


async def test_tokens_go_to_no_other_address(tmp_path: Path, url):
    await logged_in(url, tmp_path)
    async with site() as other:
        async with opened(tmp_path, {"closed": settings(other.url)}) as found:
            assert found.obstacle("closed") == NEEDED
        assert other.headers == {}


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"url": 1}'])
async def test_a_damaged_login_file_requires_a_new_login(tmp_path: Path, url, damaged):
    await logged_in(url, tmp_path)
    (tmp_path / "logins/closed.json").write_text(damaged)
    async with opened(tmp_path, {"closed": settings(url)}) as found:
        assert found.obstacle("closed") == NEEDED


async def test_a_refusal_is_reported_and_nothing_is_retained(tmp_path: Path, url, authority):
    authority.refuses = True
    with pytest.raises(McpError, match=r"login at closed failed: .*access_denied"):
        await logged_in(url, tmp_path)
    assert not (tmp_path / "logins").exists()


async def test_a_server_that_needs_no_login_is_named_as_such(tmp_path: Path):
    async with site() as there:
        with pytest.raises(McpError, match="Remove auth: oauth"):
            await logged_in(there.url, tmp_path)


async def test_who_comes_back_with_a_state_of_their_own_is_not_believed(tmp_path: Path, url):
    class Forger(Browser):
        async def _go(self, address: str) -> None:
            callback = httpx.URL(address).params["redirect_uri"]
            async with httpx.AsyncClient() as client:
                assert (await client.get(callback.replace("/callback", "/favicon.ico"))).status_code == 404
                await client.get(callback, params={"code": "stolen", "state": "forged"})

    server = McpServerSettings.model_validate(settings(url))
    with pytest.raises(McpError, match="State parameter mismatch"):
        await log_in("closed", server, LoginStore(TextFolder(tmp_path)), Forger().show)
