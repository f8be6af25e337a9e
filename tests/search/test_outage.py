"""A search that cannot answer is known before anybody plans with it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from maniple.config import SearchSettings
from maniple.search import SearchChain, find_outage, select_providers
from maniple.search.chain import REACHED_SECONDS, RunSearchCache
from maniple.search.provider import ProviderFailure
from tests.egress.proxy_servers import ProxyVariables
from tests.search.fake_providers import FakeProvider, pages
from tests.search.test_chain import Clock

pytestmark = pytest.mark.anyio


@contextmanager
def port(*, listens: bool) -> Iterator[str]:
    """Yield the address of a port, and whether it `listens` decides whether a connection is possible."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listens:
            taken.listen()
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _no_proxy(proxy_variables: ProxyVariables) -> None:
    pass


async def test_a_provider_without_a_connection_is_known_before_the_first_query() -> None:
    provider = FakeProvider(pages("a"))
    with port(listens=False) as server:
        chain = SearchChain({"one": provider}, servers={"one": [server]})
        assert await find_outage(RunSearchCache(chain, str)) != ""
    assert provider.asked == []


@pytest.mark.parametrize("other", ["reachable", "without addresses"])
async def test_one_provider_that_may_answer_is_enough(other: str) -> None:
    with port(listens=False) as dead, port(listens=True) as alive:
        servers = {"one": [dead], "two": [dead, alive] if other == "reachable" else []}
        chain = SearchChain({"one": FakeProvider(), "two": FakeProvider()}, servers=servers)
        assert await find_outage(chain) == ""


async def test_after_a_failed_search_the_provider_counts_as_out_until_its_pause_ends() -> None:
    clock = Clock()
    provider = FakeProvider(failure=ProviderFailure("DNSError('no such host')", cooldown_seconds=60))
    chain = SearchChain({"one": provider}, clock=clock)
    assert await find_outage(chain) == ""
    with pytest.raises(ProviderFailure, match="DNSError"):
        await provider.search("q", limit=1)
    with pytest.raises(Exception, match="No search provider answered"):
        await chain.search("q", limit=1)
    outage = await find_outage(chain)
    assert "search.providers" in outage
    assert "DNSError" not in outage
    clock.now += 61
    assert await find_outage(chain) == ""


async def test_a_provider_that_was_reached_is_not_checked_again_for_a_minute() -> None:
    clock = Clock()
    with port(listens=True) as server:
        chain = SearchChain({"one": FakeProvider()}, clock=clock, servers={"one": [server]})
        assert await find_outage(chain) == ""
    clock.now += REACHED_SECONDS - 1
    assert await find_outage(chain) == ""
    clock.now += 2
    assert await find_outage(chain) != ""


async def test_behind_a_proxy_only_the_proxy_is_checked(proxy_variables: ProxyVariables) -> None:
    with port(listens=False) as dead, port(listens=True) as alive:
        proxy_variables.set(HTTP_PROXY=alive)
        chain = SearchChain({"one": FakeProvider()}, servers={"one": [dead]})
        assert await find_outage(chain) == ""


@pytest.mark.parametrize("scheme", ["http", "https", "socks5", "socks"])
async def test_a_dead_proxy_is_named_and_not_where_no_proxy_leaves_it_out(
    scheme: str, proxy_variables: ProxyVariables
) -> None:
    with port(listens=False) as dead, port(listens=True) as alive:
        place = dead.removeprefix("http://")
        proxy_variables.set(ALL_PROXY=f"{scheme}://name:s3cret@{place}")
        chain = SearchChain({"one": FakeProvider()}, servers={"one": [alive]})
        for _ in range(2):  # the second time from memory
            outage = await find_outage(chain)
            assert f"ALL_PROXY ({place})" in outage and "s3cret" not in outage
        proxy_variables.set(ALL_PROXY=dead, NO_PROXY="127.0.0.1")
        assert await find_outage(SearchChain({"one": FakeProvider()}, servers={"one": [alive]})) == ""


def test_the_built_in_providers_of_the_web_name_their_servers() -> None:
    settings = SearchSettings(
        providers=("tavily", "brave", "searxng", "ddgs", "wikipedia", "arxiv"), searxng_url="http://10.0.0.1"
    )
    for spec in select_providers(settings):
        assert all(server.startswith("http") for server in spec.servers(settings)), spec.name
        assert spec.servers(settings), spec.name
