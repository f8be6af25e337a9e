"""A Chromium of another program, over its DevTools."""

import asyncio
import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest

from maniple.browser.launch import find_executable, open_browser
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError, ConfigError, Unavailable
from tests.browser.contract.elsewhere import Elsewhere, open_elsewhere
from tests.crawler.allowed import ALLOWED
from tests.crawler.web import Reply, Site, open_site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]

PAGE = Reply("<!doctype html><title>Here</title><button>Go</button>")


def to(url: str | None) -> BrowserSettings:
    return BrowserSettings(backend="cdp", cdp_url=url, timeout_seconds=10)


@pytest.fixture
def chromium() -> Path:
    executable = find_executable(BrowserSettings())
    return executable


async def tabs_of(chromium: Elsewhere) -> set[str]:
    def asked() -> list[dict[str, str]]:
        with urllib.request.urlopen(f"{chromium.url}/json/list", timeout=60) as answer:
            return json.load(answer)

    return {tab["id"] for tab in await asyncio.to_thread(asked) if tab["type"] == "page"}


@pytest.mark.slow
async def test_what_others_have_open_there_stays_theirs(
    chromium: Path, guard: AddressGuard, site: Site
) -> None:
    site.pages["/"] = PAGE
    async with open_elsewhere(chromium) as elsewhere:
        before = await tabs_of(elsewhere)
        async with open_browser(to(elsewhere.url), guard.resolve) as browser:
            page = await browser.page("a thread")
            await page.act({"action": "go_to_url", "url": site.url})
            assert [tab.title for tab in (await page.observe()).tabs] == ["Here"]
            assert len(await tabs_of(elsewhere)) == len(before) + 1
        assert await tabs_of(elsewhere) == before
        assert elsewhere.process.returncode is None


@pytest.mark.slow
async def test_one_that_went_is_connected_with_again_when_it_is_back(
    chromium: Path, guard: AddressGuard, site: Site
) -> None:
    site.pages["/"] = PAGE
    async with open_elsewhere(chromium) as first:
        async with open_browser(to(first.url), guard.resolve) as browser:
            page = await browser.page("a thread")
            await page.act({"action": "go_to_url", "url": site.url})
            os.killpg(first.process.pid, signal.SIGKILL)
            await first.process.wait()
            with pytest.raises(BrowserError, match=r"cannot be reached|ended"):
                await page.act({"action": "refresh"})
            with pytest.raises(BrowserError, match=r"cannot be reached.*--remote-debugging-port"):
                await page.act({"action": "go_to_url", "url": site.url})
            async with open_elsewhere(chromium, port=int(first.url.rpartition(":")[2])):
                await page.act({"action": "go_to_url", "url": site.url})
                assert (await page.observe()).title == "Here"


async def test_an_endpoint_without_devtools_is_reported(guard: AddressGuard) -> None:
    async with open_site({}, ALLOWED) as other:
        async with open_browser(to(f"{other.url}?token=s3cret"), guard.resolve) as browser:
            with pytest.raises(BrowserError, match="there is no DevTools") as failure:
                await (await browser.page("a thread")).observe()
    assert "s3cret" not in str(failure.value)


@pytest.mark.parametrize("url", ["9222", "localhost:9222", "ftp://localhost:9222", "http://localhost:70000"])
async def test_an_invalid_address_is_reported(url: str, guard: AddressGuard) -> None:
    with pytest.raises(ConfigError, match=r"browser\.cdp_url"):
        async with open_browser(to(url), guard.resolve):
            pass


@pytest.mark.parametrize(("backend", "missing"), [("cdp", "cdp_url"), ("sandbox", "sandbox_url")])
async def test_a_backend_without_its_address_names_the_setting(
    backend: str, missing: str, guard: AddressGuard
) -> None:
    settings = BrowserSettings.model_validate({"backend": backend})
    with pytest.raises(Unavailable) as refused:
        await open_browser(settings, guard.resolve).__aenter__()
    assert f"browser.{missing}" in refused.value.remedy
