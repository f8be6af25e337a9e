import asyncio
from collections.abc import Sequence

import pytest
from playwright.async_api import Page

from maniple.browser.drivers.tabs import PlaywrightSurface
from maniple.browser.overlays import COOLDOWN_SECONDS, OverlayClearer
from maniple.browser.overlays.detection import detect_overlays
from tests.crawler.web import Reply, Site, open_site

pytestmark = pytest.mark.anyio

HIDE = "onclick=\"this.closest('.over').remove()\""
BANNER = f"""<div class="over" style="position:fixed;bottom:0;left:0;right:0;background:#ddd;padding:20px">
We use cookies on this website. <button id="yes" {HIDE}>Accept all</button>
<button id="no" {HIDE}>Reject all</button></div>"""
WINDOW = """<div class="over" style="position:fixed;inset:0;background:rgba(0,0,0,.5)">
<div role="dialog" style="background:#fff;margin:200px">{}</div></div>"""
NEWS = "<h2>Our newsletter</h2><p>Subscribe today</p><input type=email>"
NEWSLETTER = WINDOW.format(f"{NEWS}<button {HIDE}>No thanks</button>")
ODD = WINDOW.format(f"{NEWS}<button {HIDE}>Rather walk on</button><button>Subscribe</button>")
STUBBORN = WINDOW.format(f"{NEWS}<button onclick='pressed++'>Close</button><script>pressed = 0</script>")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Chooser:
    """A model that chooses the first way that begins so."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning
        self.asked: list[tuple[str, list[str], bytes | None]] = []

    async def __call__(self, text: str, ways: Sequence[str], picture: bytes | None) -> int | None:
        self.asked.append((text, list(ways), picture))
        return next((place for place, way in enumerate(ways) if way.startswith(self.beginning)), None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def clearing(tab: Page, clock: Clock) -> OverlayClearer:
    return OverlayClearer(PlaywrightSurface(tab), clock)


async def is_covered(tab: Page) -> bool:
    return await tab.locator(".over").count() > 0


async def test_a_consent_banner_is_declined_although_accept_comes_first(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content(f"{BANNER}<script>no.addEventListener('click', () => said = 'no')</script>")
    (notice,) = await clearing.clear()
    assert '"Reject all" was clicked' in notice and "We use cookies on this website." in notice
    assert await tab.evaluate("said") == "no"


@pytest.mark.parametrize(
    ("words", "no"),
    [
        ("Diese Webseite verwendet Cookies. Datenschutz", "Alle ablehnen"),
        ("Nous utilisons des cookies", "Continuer sans accepter"),
        ("Utilizamos cookies en este sitio", "Rechazar todo"),
        ("Utilizziamo i cookie su questo sito", "Rifiuta tutti"),
        ("Wij gebruiken cookies op deze website", "Alles weigeren"),
        ("We value your privacy: our partners ask for consent", "Continue without accepting"),
        ("We use cookies", "Only necessary cookies"),
    ],
)
async def test_a_consent_banner_is_declined_in_its_language(
    words: str, no: str, tab: Page, clearing: OverlayClearer
) -> None:
    banner = BANNER.replace("We use cookies on this website.", words).replace("Reject all", no)
    await tab.set_content(banner)
    (notice,) = await clearing.clear()
    assert no in notice


async def test_banner_and_newsletter_are_cleared_in_one_go(tab: Page, clearing: OverlayClearer) -> None:
    await tab.set_content(BANNER + NEWSLETTER)
    assert len(await clearing.clear()) == 2
    assert not await is_covered(tab)


async def test_an_overlay_in_nested_shadow_roots_is_cleared(tab: Page, clearing: OverlayClearer) -> None:
    await tab.set_content(f"<a-host></a-host><template id=t>{BANNER}</template>")
    await tab.evaluate(
        """() => { const outer = document.querySelector("a-host").attachShadow({mode: "open"});
        outer.innerHTML = "<b-host></b-host>";
        outer.firstChild.attachShadow({mode: "open"}).append(t.content); }"""
    )
    assert len(await clearing.clear()) == 1
    assert not await is_covered(tab)


@pytest.mark.parametrize(
    "frame",
    [
        '<iframe src="{}" class="over" style="position:fixed;inset:0;width:100%;height:100%"></iframe>',
        '<div class="over" style="position:fixed;bottom:0;left:0;right:0"><iframe src="{}"></iframe></div>',
    ],
    ids=["the frame lies over the page", "the frame stands in a bar"],
)
async def test_an_overlay_in_a_frame_of_another_origin_is_cleared(
    frame: str, tab: Page, clearing: OverlayClearer
) -> None:
    inner = """We use cookies on this website. <button>Accept</button>
        <button onclick="parent.postMessage('gone', '*')">Reject</button>"""
    async with open_site({"/inner": Reply(inner)}, "127.0.0.1") as other:
        hearing = "<script>onmessage = () => document.querySelector('.over').remove()</script>"
        await tab.set_content(f"{frame.format(f'{other.url}/inner')}{hearing}", wait_until="load")
        assert len(await clearing.clear()) == 1
    assert not await is_covered(tab)


async def test_what_covers_a_frame_of_the_page_is_cleared_inside_of_it(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content('<h1>Page</h1><iframe style="width:1000px;height:600px"></iframe>')
    await tab.frames[1].set_content(BANNER)
    assert len(await clearing.clear()) == 1
    assert await tab.frames[1].locator(".over").count() == 0


async def test_a_native_dialog_is_closed_by_escape_where_it_has_no_button(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content(f"<dialog id=d class=over>{NEWS}</dialog><script>d.showModal()</script>")
    (notice,) = await clearing.clear()
    assert "Escape" in notice
    assert not await tab.evaluate("d.open")


async def test_a_control_that_needs_a_trusted_click_gets_one(tab: Page, clearing: OverlayClearer) -> None:
    await tab.set_content(
        NEWSLETTER.replace(HIDE, "onclick=\"event.isTrusted && this.closest('.over').remove()\"")
    )
    assert len(await clearing.clear()) == 1
    assert not await is_covered(tab)


async def test_a_strict_content_policy_keeps_nothing_from_being_cleared(
    tab: Page, clearing: OverlayClearer
) -> None:
    policy = ("Content-Security-Policy", "default-src 'none'; require-trusted-types-for 'script'")
    dialog = """<dialog open class=over style="position:fixed;inset:0"><form method=dialog>
        We use cookies on this website.<button>Reject</button></form></dialog>"""
    async with open_site({"/": Reply(dialog, headers=(policy,))}, "127.0.0.1") as site:
        await tab.goto(f"{site.url}/")
        assert len(await clearing.clear()) == 1


async def test_what_our_own_click_opened_is_left_until_it_keeps_a_click_from_its_aim(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content(f"<button id=b>News</button><template id=t>{NEWSLETTER}</template>")
    assert await clearing.clear() == ()
    await tab.evaluate("() => { b.onclick = () => document.body.append(t.content) }")
    await tab.click("#b")
    assert await clearing.clear() == ()
    assert await is_covered(tab)
    assert len(await clearing.clear(at=(30, 20))) == 1
    assert not await is_covered(tab)


async def test_what_came_up_by_itself_before_our_click_is_cleared_after_it(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content("<button id=b>On</button><p>Text</p>")
    assert await clearing.clear() == ()
    await tab.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", BANNER)
    await tab.click("#b")
    assert len(await clearing.clear()) == 1


async def test_after_a_success_the_page_is_left_alone_for_three_seconds(
    tab: Page, clearing: OverlayClearer, clock: Clock
) -> None:
    await tab.set_content(BANNER)
    assert len(await clearing.clear()) == 1
    await tab.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", NEWSLETTER)
    clock.now = COOLDOWN_SECONDS - 0.1
    assert await clearing.clear() == ()
    assert await is_covered(tab)
    clock.now = COOLDOWN_SECONDS
    assert len(await clearing.clear()) == 1


async def test_after_a_failure_the_page_is_left_alone_for_three_seconds_and_for_good_after_two(
    tab: Page, clearing: OverlayClearer, clock: Clock
) -> None:
    await tab.set_content(STUBBORN)
    pressed = []
    for now in (0, COOLDOWN_SECONDS - 0.1, COOLDOWN_SECONDS, 2 * COOLDOWN_SECONDS):
        clock.now = now
        assert await clearing.clear() == ()
        pressed.append(await tab.evaluate("pressed"))
    assert pressed[0] > 0
    assert pressed[1] == pressed[0] < pressed[2] == pressed[3]


async def test_a_new_page_is_cleared_although_the_one_before_it_was_just_now(
    tab: Page, clearing: OverlayClearer, web: Site
) -> None:
    async with open_site({"/": Reply(BANNER)}, "127.0.0.1") as site:
        for _ in range(2):
            await tab.goto(f"{site.url}/")
            assert len(await clearing.clear()) == 1


async def test_without_a_matching_rule_a_model_chooses_a_control_of_the_overlay(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content(f"<button>Elsewhere</button>{ODD}")
    choose = Chooser('Another button on it: click "Rather walk on"')
    (notice,) = await clearing.clear(choose)
    ((text, ways, picture),) = choose.asked
    assert "Our newsletter" in text
    assert ways[-2:] == ["Escape: press the Escape key", "Click outside of it"]
    assert not any("Elsewhere" in way for way in ways)
    assert picture is not None and picture.startswith(b"\xff\xd8")
    assert "Rather walk on" in notice
    assert not await is_covered(tab)


async def test_a_model_can_have_escape_pressed_or_the_dimmed_page_clicked(tab: Page, clock: Clock) -> None:
    listening = """<script>const over = document.querySelector(".over");
        over.onclick = event => event.target === over && over.remove();
        onkeydown = event => event.key === "Enter" && over.remove()</script>"""
    await tab.set_content(ODD + listening)
    (notice,) = await OverlayClearer(PlaywrightSurface(tab), clock).clear(Chooser("Click outside"))
    assert "Click outside of it" in notice
    assert not await is_covered(tab)


async def test_a_click_outside_of_it_never_hits_what_can_be_used(tab: Page, clearing: OverlayClearer) -> None:
    used = "position:fixed;z-index:9;background:#fff;width:100%;height:30%;left:0"
    bars = "".join(
        f"<button style='{used};{side}:0' onclick='pressed++'>Cart</button>" for side in ("top", "bottom")
    )
    await tab.set_content(f"<script>pressed = 0</script>{ODD}{bars}")
    choose = Chooser("Click outside")
    assert await clearing.clear(choose) == ()
    assert len(choose.asked) == 1
    assert await tab.evaluate("pressed") == 0


async def test_a_page_that_never_answers_is_given_up(tab: Page, clearing: OverlayClearer) -> None:
    await tab.set_content(
        """<script>window[Symbol.for("maniple.overlays")] = {look: () => new Promise(() => 0)}</script>"""
    )
    async with asyncio.timeout(60):
        assert await clearing.clear() == ()


async def test_what_a_model_chose_is_no_success_unless_the_overlay_went_away(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content(ODD)
    assert await clearing.clear(Chooser("Escape")) == ()
    assert await is_covered(tab)


async def test_a_model_that_leaves_it_or_answers_nonsense_clicks_nothing(tab: Page, clock: Clock) -> None:
    async def nonsense(text: str, ways: Sequence[str], picture: bytes | None) -> int | None:
        return 99

    for choose in (nonsense, Chooser("There is no such way")):
        await tab.set_content(ODD.replace(HIDE, "onclick='pressed++'") + "<script>pressed = 0</script>")
        assert await OverlayClearer(PlaywrightSurface(tab), clock).clear(choose) == ()
        assert await tab.evaluate("pressed") == 0


async def test_a_page_cannot_fake_its_overlays(tab: Page, clearing: OverlayClearer) -> None:
    await tab.set_content(
        """<script>window[Symbol.for("maniple.overlays")] = {look: () => ({document: NaN, overlays: [
        {id: "x", confidence: Infinity, controls: 7, outside: [1], frames: -1}, 3]})}</script>"""
    )
    assert await clearing.clear(Chooser("Close")) == ()


async def test_a_page_that_goes_on_in_the_middle_ends_the_clearing_quietly(
    tab: Page, clearing: OverlayClearer, web: Site
) -> None:
    await tab.goto(f"{web.url}/clean/toast")
    await tab.set_content(BANNER.replace(HIDE, f"onclick=\"location.href = '{web.url}/clean/menu'\""))
    await clearing.clear()
    await tab.wait_for_url("**/clean/menu")


async def test_looking_takes_little_time_on_three_thousand_controls(
    tab: Page, clearing: OverlayClearer
) -> None:
    await tab.set_content("".join(f"<button>{number}</button>" for number in range(3000)) + NEWSLETTER)
    surface = PlaywrightSurface(tab)
    await detect_overlays(surface.document)
    times = []
    for _ in range(5):
        started = await tab.evaluate("performance.now()")
        await detect_overlays(surface.document)
        times.append(await tab.evaluate("performance.now()") - started)
    print(f"look at 3,000 controls: {min(times):.0f} ms")
    assert min(times) < 50
