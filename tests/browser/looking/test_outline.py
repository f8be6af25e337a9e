"""The way to see a page that breaks the indexer."""

from typing import Any

import pytest

from maniple.browser.drivers import observation
from maniple.browser.drivers.observation import find_element
from maniple.errors import BrowserError
from tests.browser.looking.site import Site, named

pytestmark = pytest.mark.anyio

PAGE = """
    <h1>Staff [12]</h1><p>All of us <a href=/x>at "work"</a></p><button id=b>Send: now</button>
    <input aria-label=Mail value=ada><label><input type=checkbox checked> News</label>
    <iframe srcdoc="<button onclick='textContent = `Done`'>Inner</button>"></iframe>
"""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a page that holds what the indexer has not been thought out for."""
    selector = observation.indexer_selector

    def broken_selector(what: str, **more: Any) -> str:
        return selector(what, **more | {"margin": None, "clip": 1})

    monkeypatch.setattr(observation, "indexer_selector", broken_selector)


@pytest.mark.usefixtures("broken")
async def test_a_page_that_breaks_the_indexer_is_seen_by_its_outline(site: Site) -> None:
    look = await site.show(PAGE)
    assert look.text.splitlines() == [
        "Staff (12)",
        "All of us",
        '[0]<link>at "work"</link>',
        "[1]<button>Send: now</button>",
        '[2]<textbox value="ada">Mail</textbox>',
        "[3]<checkbox checked>News</checkbox>",
        "News",
        "[4]<button>Inner</button>",
    ]
    await (await site.find("Inner")).click()
    assert named(await site.look(), "Done").index == 9


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("script", ["b.remove()", "b.outerHTML = b.outerHTML", "b.innerText = 'Delete all'"])
async def test_what_has_changed_in_an_outline_is_not_given(site: Site, script: str) -> None:
    look = await site.show(PAGE)
    await site.tab.evaluate(script)
    with pytest.raises(BrowserError, match=r"index 1 not found: .*current state"):
        await find_element(look, 1)
