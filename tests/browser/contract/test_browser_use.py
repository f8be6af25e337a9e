"""What is browser-use's alone: its process, and what that must not see, leave or do."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.browser import Page
from maniple.browser.launch import open_browser
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from tests.browser.contract.browser_use_environment import ENVIRONMENT
from tests.crawler.web import Reply, Site, open_site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]

installed = pytest.mark.skipif(not ENVIRONMENT, reason="needs its environment: make browser-use")
SETTINGS = BrowserSettings(backend="browser-use", browser_use_dir=ENVIRONMENT, timeout_seconds=20)
INNER = Reply("<!doctype html><button onclick=\"parent.postMessage('inner', '*')\">Inside</button>")


def workers() -> list[int]:
    """The processes of browser-use that this one started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"browser_use/worker.py" in (entry / "cmdline").read_bytes():
                status = (entry / "status").read_text()
                found += [int(entry.name)] if f"\nPPid:\t{os.getpid()}\n" in status else []
        except OSError:
            continue  # it has just ended
    return found


def environment_of(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes()


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


@asynccontextmanager
async def on_a_page(guard: AddressGuard, site: Site) -> AsyncIterator[Page]:
    async with open_browser(SETTINGS, guard.resolve) as browser:
        page = await browser.page("a thread")
        await page.act({"action": "go_to_url", "url": f"{site.url}/form"})
        await page.observe()
        yield page


@installed
async def test_it_gets_nothing_of_the_server_s_environment(
    guard: AddressGuard, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-in-the-environment")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=canary-in-a-file\n")
    async with on_a_page(guard, site):
        (worker,) = workers()
        environment = environment_of(worker)
        assert b"ANONYMIZED_TELEMETRY=false" in environment
        assert b"canary" not in environment
        assert names_in(tmp_path) == [".env"]
        assert "browser_use" not in sys.modules
        assert "ANTHROPIC_API_KEY" not in os.environ


@installed
async def test_it_ends_with_the_page_and_comes_back_when_it_was_killed(
    guard: AddressGuard, site: Site
) -> None:
    async with on_a_page(guard, site) as page:
        (worker,) = workers()
        os.kill(worker, signal.SIGKILL)
        assert (await page.observe()).title == "A form"
        assert worker not in workers()
        await page.aclose()
        assert workers() == []


@installed
async def test_a_look_that_is_cancelled_leaves_the_next_one_right(guard: AddressGuard, site: Site) -> None:
    async with on_a_page(guard, site) as page:
        look = asyncio.create_task(page.observe())
        await asyncio.sleep(0)
        look.cancel()
        await asyncio.gather(look, return_exceptions=True)
        state = await page.observe()
        assert state.title == "A form"
        assert "Send it" in state.interactive_elements


@installed
async def test_frames_of_others_and_shadows_are_seen_and_clicked(guard: AddressGuard, site: Site) -> None:
    async with open_site({"/": INNER}, "127.0.0.2") as other:
        site.pages["/nested"] = Reply(
            "<!doctype html><title>Nested</title><div id=host></div>"
            f"<iframe src='{other.url}'></iframe><script>"
            "addEventListener('message', event => { document.title = event.data; });"
            "const root = document.getElementById('host').attachShadow({mode: 'open'});"
            "root.innerHTML = '<button>Shaded</button>';"
            "root.firstChild.onclick = () => { document.title = 'shaded'; };</script>"
        )
        async with on_a_page(guard, site) as page:
            await page.act({"action": "go_to_url", "url": f"{site.url}/nested"})
            for name, title in (("Shaded", "shaded"), ("Inside", "inner")):
                elements = (await page.observe()).elements
                index = next(one.index for one in elements if one.name == name)
                await page.act({"action": "click_element", "index": index})
                assert (await page.observe()).title == title
