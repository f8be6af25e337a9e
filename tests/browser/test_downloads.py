"""Pages that offer endless files: they block nothing and do not fill the disk."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.browser import Browser, PageServices, open_browser
from maniple.config import BrowserSettings
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Send, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

GIVE = """
    const give = (href, name) => {
        const link = Object.assign(document.createElement('a'), {href, download: name});
        document.body.append(link);
        link.click();
        link.remove();
    };
"""
# Not before it may, so that nothing that is done waits for it.
MANY = f"""<button>Hi</button><script>{GIVE}
    let count = 0, may = false;
    const timer = setInterval(async () => {{
        may ||= (await fetch('/may')).ok;
        if (!may) return;
        if (++count >= 40) clearInterval(timer);
        give(`/file/${{count}}`, `file-${{count}}.txt`);
    }}, 150);
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
async def browser(anyio_backend: str, folder: Path) -> AsyncIterator[Browser]:
    settings = BrowserSettings(
        allow_private=("127.0.0.2/32",), timeout_seconds=20, max_download_bytes=10_000, max_wait_seconds=0.1
    )
    async with open_browser(settings, downloads=folder) as browser:
        yield browser


@asynccontextmanager
async def driven(browser: Browser) -> AsyncIterator[Driver]:
    page = await browser.page("thread", PageServices(save_file=_kept))
    try:
        yield Driver(page)
    finally:
        await page.aclose()


async def _kept(name: str, file: Path) -> str:
    return f"kept {name}"


async def until_given(driver: Driver, site: Site) -> str:
    """The notes after a page has offered 40 unrequested files."""
    file = Reply(b"x", "application/octet-stream")
    site.pages |= {"/many": Reply(MANY)} | {f"/file/{number}": file for number in range(1, 41)}
    told = [(await driver.act("go_to_url", url=f"{site.url}/many")).text]
    site.pages["/may"] = Reply()
    async with asyncio.timeout(60):
        while sum(path.startswith("/file/") for _, path, _ in site.requests) < 35:
            await driver.act("wait", seconds=0.1)
        while "more file" not in "".join(told):
            await driver.look()
            assert driver.state is not None
            told += driver.state.notices
    return "\n".join(told)


def left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
async def test_a_page_that_gives_files_for_ever_can_be_seen_meanwhile(browser: Browser, site: Site) -> None:
    async def drip(send: Send) -> None:
        while True:
            await send(b"x")
            await asyncio.sleep(0.1)

    site.pages |= {
        "/drip": Reply(content_type="application/octet-stream", stream=drip),
        "/ever": Reply(
            f"<button>Hi</button><script>{GIVE} setInterval(() => give('/drip', 'x'), 700)</script>"
        ),
    }
    async with driven(browser) as driver:
        await driver.act("go_to_url", url=f"{site.url}/ever")
        async with asyncio.timeout(60):
            while sum(path == "/drip" for _, path, _ in site.requests) < 2:
                await driver.act("wait", seconds=0.1)
            assert "Hi" in await driver.look()


@pytest.mark.slow
async def test_only_some_unclaimed_downloads_are_retained(browser: Browser, site: Site, folder: Path) -> None:
    async with driven(browser) as driver:
        told = await until_given(driver, site)
    assert "more files were not downloaded" in told
    assert left(folder) == []
