"""One login at a server, which several processes use: nodes with a database, or programs with a folder."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from maniple.config import McpServerSettings
from maniple.mcp import LoginStore, PinStore, servers
from maniple.mcp.http_transport import log_in
from maniple.shared_texts import SharedTexts, TextFolder
from maniple.store.postgres.shared_texts import BlockingConnection, EncryptedTexts, TextRows
from tests.mcp.authority import Authority, closed_site
from tests.mcp.open_servers import Opened, misbehaving, opened, until
from tests.mcp.test_login import NEEDED, Browser, settings

pytestmark = pytest.mark.anyio
OpenTexts = Callable[[], SharedTexts]
NODES = 4


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def url(authority: Authority) -> AsyncIterator[str]:
    async with closed_site(authority) as address:
        yield address


@pytest.fixture(params=["files", "rows"])
def open_logins(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenTexts]:
    """Open the logins as one more node does."""
    key = Fernet.generate_key().decode()
    with ExitStack() as stack:
        if request.param == "files":
            yield lambda: TextFolder(tmp_path / "logins")
            return
        address = request.getfixturevalue("postgres_url")

        def open_rows() -> SharedTexts:
            connection = stack.enter_context(closing(BlockingConnection(address)))
            return EncryptedTexts(TextRows(connection, "login"), [key])

        yield open_rows


async def person_logs_in(url: str, logins: SharedTexts) -> None:
    server = McpServerSettings.model_validate(settings(url))
    await log_in("closed", server, LoginStore(logins), Browser().show)


def expire(logins: SharedTexts) -> dict:
    """Have the tokens ended; return the login as it was."""
    stored = json.loads(logins.read("closed") or "")
    logins.write("closed", json.dumps({**stored, "expires_at": 1.0}))
    return stored


async def open_node(stack: AsyncExitStack, folder: Path, url: str, logins: SharedTexts) -> Opened:
    node = opened(folder, {"closed": settings(url)}, logins=LoginStore(logins))
    return await stack.enter_async_context(node)


async def test_a_login_on_one_node_is_used_by_another_at_once(
    tmp_path: Path, url: str, open_logins: OpenTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_FIRST_DELAY_SECONDS", 1_000.0)  # the next attempt comes too late
    async with AsyncExitStack() as stack:
        node = await open_node(stack, tmp_path, url, open_logins())
        assert node.obstacle("closed") == NEEDED
        await person_logs_in(url, open_logins())
        await until(lambda: node.list_tools() == ["closed__tokens"])


async def test_nodes_whose_token_has_ended_refresh_it_once(
    tmp_path: Path, url: str, open_logins: OpenTexts, authority: Authority
) -> None:
    logins = open_logins()
    await person_logs_in(url, logins)
    expire(logins)
    async with AsyncExitStack() as stack:
        opening = [open_node(stack, tmp_path / str(number), url, open_logins()) for number in range(NODES)]
        nodes = await asyncio.gather(*opening)
        assert [node.list_tools() for node in nodes] == [["closed__tokens"]] * NODES
        assert authority.refresh_owner == 1
        tokens = json.loads(logins.read("closed") or "")["tokens"]
        assert [*authority.refresh] == [tokens["refresh_token"]], "the one that is valid is stored"


async def test_a_node_uses_the_token_that_another_has_refreshed(
    tmp_path: Path, url: str, open_logins: OpenTexts, authority: Authority
) -> None:
    logins = open_logins()
    await person_logs_in(url, logins)
    async with AsyncExitStack() as stack:
        first = await open_node(stack, tmp_path / "1", url, open_logins())
        before = expire(logins)
        second = await open_node(stack, tmp_path / "2", url, open_logins())
        assert second.list_tools() == ["closed__tokens"]
        authority.access.pop(before["tokens"]["access_token"])  # many servers take it back then
        assert (await first.call("closed__tokens")).text
        assert (authority.refresh_owner, first.obstacle("closed")) == (1, "")


async def test_what_is_accepted_on_one_node_is_used_by_another(tmp_path: Path, postgres_url: str) -> None:
    with (
        closing(BlockingConnection(postgres_url)) as one,
        closing(BlockingConnection(postgres_url)) as other,
    ):
        pins, others = PinStore(TextRows(one, "accepted_tools")), PinStore(TextRows(other, "accepted_tools"))
        async with opened(tmp_path, {"bad": misbehaving()}, pins=pins, trust="accepted") as node:
            assert node.list_tools() == []
            state = node.servers.states()[0]
            await asyncio.to_thread(others.accept, "bad", [tool.definition for tool in state.tools])
            await until(lambda: "bad__echo" in node.list_tools())
