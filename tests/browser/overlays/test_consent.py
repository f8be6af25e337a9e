import pytest
from playwright.async_api import Page

from maniple.browser.drivers.tabs import PlaywrightSurface
from maniple.browser.overlays import OverlayClearer
from maniple.browser.overlays.clearing import opt_out
from tests.crawler.web import Reply, open_site

pytestmark = pytest.mark.anyio

# As termsfeed.com's tool shows itself: no is said on its second page alone.
BANNER = """<div class="termsfeed-com---nb over" style="position:fixed;bottom:0">
We use cookies on this website.
<button class="cc-nb-okagree" onclick="said = 'yes'">I agree</button>
<button class="cc-nb-changep" onclick="second.hidden = false">Change my preferences</button></div>
<div id="second" hidden><input type="checkbox" cookie_consent_toggler="true" checked id="tracking">
<button class="cc-cp-foot-save" onclick="said = tracking.checked; over()">Save</button></div>
<script>said = null;
const over = () => { document.querySelector(".over").remove(); second.remove(); }</script>"""


async def test_a_known_consent_tool_is_declined_by_its_api(tab: Page) -> None:
    await tab.set_content(BANNER)
    (notice,) = await OverlayClearer(PlaywrightSurface(tab)).clear()
    assert "was refused" in notice
    assert await tab.evaluate("said") is False


async def test_a_page_without_a_known_tool_is_not_touched(tab: Page) -> None:
    await tab.set_content("<button onclick='said = 1'>Accept all</button><script>said = 0</script>")
    assert not await opt_out(PlaywrightSurface(tab).document)
    assert await tab.evaluate("said") == 0


async def test_a_consent_tool_is_declined_once_a_page(tab: Page) -> None:
    await tab.set_content(BANNER)
    assert await opt_out(PlaywrightSurface(tab).document)
    await tab.set_content(BANNER)
    assert not await opt_out(PlaywrightSurface(tab).document)


async def test_a_page_that_pretends_to_be_the_rules_is_given_up(tab: Page) -> None:
    await tab.set_content("<script>autoconsentReceiveMessage = () => new Promise(() => 0)</script>")
    assert not await opt_out(PlaywrightSurface(tab).document)


async def test_under_a_policy_that_forbids_scripts_the_rules_work_too(tab: Page) -> None:
    policy = ("Content-Security-Policy", "script-src 'none'; require-trusted-types-for 'script'")
    banner = BANNER.replace('<div id="second" hidden>', '<div id="second">').partition("<script>")[0]
    async with open_site({"/": Reply(banner, headers=(policy,))}, "127.0.0.1") as site:
        await tab.goto(f"{site.url}/")
        assert await opt_out(PlaywrightSurface(tab).document)
        assert not await tab.is_checked("#tracking")
