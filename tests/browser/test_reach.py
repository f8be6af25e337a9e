"""Where a thread's browser can be led: to nothing internal, and to no scheme but http and https."""

from contextlib import suppress

import pytest

from maniple.browser import Browser
from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.browser.test_egress import ATTEMPTS
from tests.crawler.web import Canary, Reply, Site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


def lay_out(site: Site, canary: Canary, body: str) -> None:
    inner = f"http://127.0.0.1:{canary.port}"
    site.pages |= {
        "/": Reply(body.replace("{inner}", inner).replace("{port}", str(canary.port))),
        "/go": redirect(f"{inner}/redirected", 307),
        "/worker.js": Reply(f"fetch('{inner}/')", content_type="text/javascript"),
    }


@pytest.mark.parametrize("action", ["go_to_url", "open_tab"])
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://[::1]:{port}/",
        "{site}/go",
        "file:///etc/passwd",
        "data:text/html,hi",
        "chrome://version",
        "view-source:http://127.0.0.1:{port}/",
        "javascript:fetch('http://127.0.0.1:{port}/')",
        "blob:{site}/x",
        "about:blank",
    ],
)
async def test_an_address_that_is_not_public_is_refused_in_words(
    url: str, action: str, browser: Browser, site: Site, canary: Canary
) -> None:
    lay_out(site, canary, "<p>Page")
    page = await browser.page("refused")
    with pytest.raises(BrowserError, match=f"^Browser action '{action}' failed: "):
        await page.act({"action": action, "url": url.format(port=canary.port, site=site.url)})
    await page.aclose()
    assert canary.hits == []


LINKS = {
    "link": "<a href='{inner}/'>Go</a>",
    "link to a redirect": "<a href='/go'>Go</a>",
    "link to a new tab": "<a href='{inner}/' target=_blank>Go</a>",
    "popup": "<button onclick=\"open('{inner}/')\">Go</button>",
    "popup to a redirect": "<button onclick=\"open('/go')\">Go</button>",
    "form": "<form action='{inner}/' method=post><button>Go</button></form>",
    "fetch": "<button onclick=\"fetch('{inner}/', {mode: 'no-cors'}).catch(() => 0)\">Go</button>",
    "WebSocket": "<button onclick=\"new WebSocket('ws://127.0.0.1:{port}/')\">Go</button>",
    "service worker": "<button onclick=\"navigator.serviceWorker?.register('/worker.js')\">Go</button>",
    "image": "<button onclick=\"new Image().src = '{inner}/'\">Go</button>",
    "download": "<a href='{inner}/' download=x>Go</a>",
    "file": "<a href='file:///etc/passwd'>Go</a>",
    "file in a new tab": "<button onclick=\"open('file:///etc/passwd')\">Go</button>",
    "data": "<a href='data:text/html,root:fetched'>Go</a>",
    "chrome": "<a href='chrome://version'>Go</a>",
    "source": "<a href='view-source:{inner}/'>Go</a>",
}


@pytest.mark.parametrize("html", LINKS.values(), ids=LINKS.keys())
async def test_no_click_leads_to_an_internal_address(
    html: str, browser: Browser, site: Site, canary: Canary
) -> None:
    lay_out(site, canary, f"<p>Page</p>{html}")
    driver = Driver(await browser.page("clicks"))
    await driver.act("go_to_url", url=site.url)
    index = await driver.index("Go")
    with suppress(BrowserError):
        await driver.act("click_element", index=index)
    read = (await driver.page.read()).text
    await driver.page.aclose()
    assert canary.hits == []
    assert "canary" not in read
    assert "root:" not in read


@pytest.mark.slow
async def test_a_page_that_tries_everything_in_a_tab_that_stays_open_reaches_nothing(
    browser: Browser, site: Site, canary: Canary
) -> None:
    host = site.url.removeprefix("http://")
    inner = f"http://127.0.0.1:{canary.port}"
    driver = Driver(await browser.page("everything"))
    for attempt in ATTEMPTS.values():
        lay_out(site, canary, attempt.format(inner=inner, port=canary.port, go=f"{site.url}/go", site=host))
        with suppress(BrowserError):  # it went where it cannot
            await driver.act("go_to_url", url=site.url)
            await driver.act("wait", seconds=0)
    await driver.page.aclose()
    assert canary.hits == []
