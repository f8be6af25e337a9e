"""Servers at an address: the official SDK's, over streamable HTTP and SSE."""

import asyncio
from pathlib import Path

import pytest

from maniple.errors import McpError
from tests.egress.proxy_servers import ProxyVariables
from tests.mcp.open_servers import opened, until
from tests.mcp.web import site

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_at_an_address_gets_our_headers_and_answers(transport, tmp_path: Path):
    async with site(transport) as web:
        server = {"url": web.url, "headers": {"X-Team": "maniple"}}
        async with opened(tmp_path, {"web": server}) as found:
            assert (await found.call("web__add", a=1, b=3)).text == "4"
            assert web.headers["x-team"] == "maniple"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_cancelled_call_is_cancelled_at_the_server(transport, tmp_path: Path):
    async with site(transport) as web, opened(tmp_path, {"web": {"url": web.url}}) as found:
        call = asyncio.create_task(found.call("web__wait"))
        await asyncio.wait_for(web.running.wait(), 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(web.cancelled.wait(), 60)


async def test_an_unanswered_call_times_out_and_is_cancelled_on_the_server(tmp_path: Path):
    async with site() as web:
        async with opened(tmp_path, {"web": {"url": web.url, "timeout_seconds": 0.3}}) as found:
            with pytest.raises(McpError, match=r"within 0\.3 seconds"):
                await found.call("web__wait")
            await asyncio.wait_for(web.cancelled.wait(), 60)


async def test_a_server_that_went_away_is_connected_again_when_it_is_back(tmp_path: Path):
    async with site() as web, opened(tmp_path, {"web": {"url": web.url}}) as found:
        await web.stop()
        with pytest.raises(McpError):
            await found.call("web__add", a=1, b=3)
        await until(lambda: found.list_tools() == [])
        await web.start()
        await until(lambda: "web__add" in found.list_tools())
        assert (await found.call("web__add", a=1, b=3)).text == "4"


async def test_after_a_list_changed_notification_the_tools_are_listed_again(tmp_path: Path):
    async with site() as web, opened(tmp_path, {"web": {"url": web.url}}) as found:
        await found.call("web__grow")
        await until(lambda: "web__grown" in found.list_tools())


async def test_a_server_without_notifications_is_listed_again_after_a_while(tmp_path: Path):
    async with site() as web, opened(tmp_path, {"web": {"url": web.url}}, refresh_seconds=0.1) as found:
        web.server.remove_tool("add")
        await until(lambda: "web__add" not in found.list_tools())
        with pytest.raises(McpError, match="has it no more"):
            await found.call("web__add", a=1, b=3)


async def test_a_message_beyond_all_bounds_is_refused_and_not_read(tmp_path: Path):
    async with site() as web, opened(tmp_path, {"web": {"url": web.url}}) as found:
        with pytest.raises(McpError):
            await found.call("web__long", characters=20_000_000)
        await until(lambda: "web__add" in found.list_tools())
        assert len((await found.call("web__long", characters=3_000_000)).text) == 3_000_000


async def test_the_session_on_the_server_is_deleted_at_the_end(tmp_path: Path):
    async with site(is_old=True) as web:
        async with opened(tmp_path, {"web": {"url": web.url}}) as found:
            assert "web__add" in found.list_tools()
            assert not web.ended.is_set()
        assert web.ended.is_set()


async def test_a_server_that_does_not_let_go_is_left_all_the_same(tmp_path: Path):
    async with site(is_old=True, is_deaf=True) as web:
        async with asyncio.timeout(60):
            async with opened(tmp_path, {"web": {"url": web.url}}) as found:
                assert "web__add" in found.list_tools()
        assert web.ended.is_set()


async def test_a_server_with_oauth_gets_the_clients_token(tmp_path: Path):
    async with site(token="the-token") as web:
        issuer = web.url.removesuffix("/mcp")
        oauth = {"issuer": issuer, "client_id": "team", "client_secret": "a-long-secret"}
        async with opened(tmp_path, {"web": {"url": web.url, "oauth": oauth}}) as found:
            assert (await found.call("web__add", a=1, b=3)).text == "4"
            assert web.headers["authorization"] == "Bearer the-token"


async def test_a_client_secret_is_sent_only_to_the_configured_server(tmp_path: Path):
    oauth = {"issuer": "https://login.test", "client_id": "team", "client_secret": "a-long-secret"}
    async with site(token="the-token") as web:
        async with opened(tmp_path, {"web": {"url": web.url, "oauth": oauth}}) as found:
            assert found.list_tools() == []
            assert "token-request" not in web.headers


async def test_a_server_that_refuses_the_headers_is_unavailable_with_a_reason(tmp_path: Path):
    async with site(token="the-token") as web, opened(tmp_path, {"web": {"url": web.url}}) as found:
        assert found.obstacle("web")
        assert found.list_tools() == []


async def test_servers_with_tools_of_the_same_name_are_distinguished(tmp_path: Path):
    async with site() as one, site() as other:
        servers = {"one": {"url": one.url}, "the other": {"url": other.url, "tools": ["add"]}}
        async with opened(tmp_path, servers) as found:
            assert {"one__add", "the_other__add"} <= set(found.list_tools())
            assert (await found.call("the_other__add", a=2, b=2)).text == "4"
            assert found.servers.find("the_other__wait", ["the other"]) is None


async def test_a_dead_proxy_is_named_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ProxyVariables(monkeypatch).set(HTTP_PROXY="socks5://name:s3cret@127.0.0.1:9")
    async with opened(tmp_path, {"web": {"url": "http://site.example/mcp"}}) as found:
        obstacle = found.obstacle("web")
    assert "HTTP_PROXY (127.0.0.1:9)" in obstacle and not obstacle.startswith("Proxy")
    assert "s3cret" not in obstacle


async def test_a_variable_that_is_no_address_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ProxyVariables(monkeypatch).set(HTTP_PROXY="gopher://name:s3cret@127.0.0.1:9")
    async with opened(tmp_path, {"web": {"url": "http://site.example/mcp"}}) as found:
        assert found.obstacle("web").startswith("HTTP_PROXY ")
