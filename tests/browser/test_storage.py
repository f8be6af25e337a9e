"""Cookies and local storage that persist across restarts if enabled."""

from pathlib import Path

import pytest

from maniple.browser import open_browser
from maniple.browser.drivers.session import BrowserStorage
from maniple.config import BrowserSettings
from maniple.errors import ConfigError
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

KEPT = BrowserSettings(allow_private=("127.0.0.2/32",), keep_storage=True)
PAGE = """<p id=out></p><script>localStorage.n = 1 + Number(localStorage.n ?? 0);
out.textContent = `visit ${localStorage.n}, ${document.cookie}`;
document.cookie = "known=yes; max-age=1000"</script>"""


async def visited(folder: Path, site: Site, thread: str, *, forget: bool = False) -> str:
    """What the page says to a thread of a browser that is new."""
    site.pages["/"] = Reply(PAGE)
    async with open_browser(KEPT, storage=folder) as browser:
        driver = Driver(await browser.page(thread))
        await driver.act("go_to_url", url=site.url)
        said = (await driver.page.read()).text
        if forget:
            await browser.forget(thread)
    return said


@pytest.mark.slow
async def test_a_thread_is_known_again_after_a_restart_and_no_other_is(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert await visited(folder, site, "a") == "visit 1,"
    assert await visited(folder, site, "a") == "visit 2, known=yes"
    assert await visited(folder, site, "b") == "visit 1,"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


async def test_a_thread_that_is_forgotten_leaves_nothing(site: Site, tmp_path: Path) -> None:
    storage = BrowserStorage(tmp_path)
    await visited(tmp_path, site, "a", forget=True)
    assert storage.load("a") is None
    storage.save("b", {"cookies": [], "origins": []})
    async with open_browser(KEPT, storage=tmp_path) as browser:
        await browser.forget("b")  # nothing of it is open
    assert storage.load("b") is None


@pytest.mark.parametrize("content", ["", "{", "[]", "1", '{"cookies": 1, "origins": []}', "\x00"])
def test_a_file_that_is_damaged_is_as_good_as_none(content: str, tmp_path: Path) -> None:
    storage = BrowserStorage(tmp_path)
    storage.save("a", {"cookies": [], "origins": []})
    assert storage.load("a") is not None
    written(tmp_path).write_text(content)
    assert storage.load("a") is None


@pytest.mark.slow
async def test_a_state_that_chromium_does_not_take_is_left_out(site: Site, tmp_path: Path) -> None:
    BrowserStorage(tmp_path).save("a", {"cookies": [{}], "origins": []})
    assert await visited(tmp_path, site, "a") == "visit 1,"


def written(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


def test_a_too_large_state_is_not_stored(tmp_path: Path) -> None:
    storage = BrowserStorage(tmp_path)
    storage.save("a", {"cookies": ["x" * 6_000_000], "origins": []})
    assert storage.load("a") is None


async def test_to_keep_storage_takes_a_folder() -> None:
    with pytest.raises(ConfigError, match=r"browser\.keep_storage needs a folder"):
        async with open_browser(KEPT):
            pass
