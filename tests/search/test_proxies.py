"""Search behind a company's proxy: an engine's API, Tavily's library, and ddgs, which is not Python's."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import ClosableProvider
from maniple.search.providers.brave import BraveSearch
from maniple.search.providers.ddgs import DdgsSearch
from maniple.search.providers.tavily import TavilySearch
from tests.crawler.web import Reply, Site, open_site
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyScheme,
    ProxyVariables,
    TestAuthority,
    open_proxy_server,
)
from tests.search.responses import BRAVE, DUCKDUCKGO, as_json

pytestmark = pytest.mark.anyio
PROVIDERS = ("brave", "tavily", "ddgs")
URL = "https://site.example"
PAGES: Mapping[str, Reply] = {
    "/res/v1/web/search": as_json(BRAVE),
    "/search": as_json({"results": [{"title": "Arch", "url": "https://a.test/", "content": "An arch."}]}),
    "/duckduckgo": Reply(DUCKDUCKGO),
}


def create(name: str, url: str) -> ClosableProvider:
    settings = SearchSettings(
        engines=("duckduckgo",),
        brave_api_key=SecretStr("k"),
        tavily_api_key=SecretStr("k"),
        tavily_base_url=url,
        timeout_seconds=20,
    )
    match name:
        case "brave":
            return BraveSearch(settings, url)
        case "tavily":
            return TavilySearch(settings)
        case _:
            return DdgsSearch(settings)


async def found(name: str, url: str = URL) -> bool:
    async with aclosing(create(name, url)) as provider:
        return [hit.url for hit in await provider.search("bridges", limit=1)] == ["https://a.test/"]


@pytest.fixture(autouse=True)
def _trusts(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch, proxy_variables: ProxyVariables
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.delenv("DDGS_PROXY")
    monkeypatch.setattr(Duckduckgo, "search_url", f"{URL}/duckduckgo")


@pytest.fixture
async def site(anyio_backend: str, authority: TestAuthority) -> AsyncIterator[Site]:
    async with open_site(dict(PAGES), tls=authority.context) as site:
        yield site


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_proxy_with_a_password_carries_a_search(
    name: str, scheme: ProxyScheme, site: Site, authority: TestAuthority, proxy_variables: ProxyVariables
) -> None:
    login = ("user@corp", "pass:w/rd")
    async with open_proxy_server(
        scheme, {"site.example": site.port}, login=login, authority=authority
    ) as proxy:
        proxy_variables.set(ALL_PROXY=proxy.url)
        assert await found(name)
    assert proxy.passed == ["site.example:443"]


@pytest.mark.parametrize("name", ["brave", "tavily"])
async def test_a_host_in_no_proxy_is_asked_directly(
    name: str, site: Site, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(ALL_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.0/8")
    assert await found(name, f"https://127.0.0.1:{site.port}")


async def test_an_engine_in_no_proxy_is_asked_directly(
    site: Site, proxy_variables: ProxyVariables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Duckduckgo, "search_url", f"https://127.0.0.1:{site.port}/duckduckgo")
    proxy_variables.set(ALL_PROXY="http://127.0.0.1:9", NO_PROXY="duckduckgo.com,127.0.0.1")
    assert await found("ddgs")


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_dead_proxy_is_named_without_its_password(
    name: str, scheme: str, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(HTTPS_PROXY=f"{scheme}://name:s3cret@127.0.0.1:9")
    with pytest.raises(SearchError, match=r"HTTPS_PROXY \(127.0.0.1:9\)") as caught:
        await found(name)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["brave", "tavily"])
async def test_a_variable_that_is_no_address_is_a_failure_of_the_provider(
    name: str, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(HTTPS_PROXY="gopher://name:s3cret@127.0.0.1:9")
    with pytest.raises(SearchError, match="HTTPS_PROXY") as caught:
        await found(name)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["brave", "tavily"])
async def test_an_unknown_authority_is_answered_with_what_to_do(
    name: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SearchError, match="SSL_CERT_FILE"):
        await found(name, f"https://127.0.0.1:{site.port}")
