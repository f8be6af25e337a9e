"""A person watches the team's browser: live, back through its steps, and as a film afterwards."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agents.browsing.shop import done, shop_script, use
from tests.openai_server import OpenAIServer
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess, environment, server_process

SHOP = """<!doctype html><title>Shop</title><h1>Hats</h1>
<style>a { position: fixed; left: 40vw; top: 50vh; width: 20vw; height: 10vh; background: #ccc }</style>
<a href="/bought">Buy the hat</a>"""
BOUGHT = "<!doctype html><title>Bought</title><h1>Thank you</h1>"
BUTTON = (0.4, 0.5, 0.2, 0.1)
"""Left, top, width and height of the link, in fractions of the window."""


class Shop(ThreadingHTTPServer):
    """A shop that delivers on demand."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Counter)
        self.delivers = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Counter(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        if self.path == "/bought":
            self.server.delivers.wait(60)
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((BOUGHT if self.path == "/bought" else SHOP).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        serving = threading.Thread(target=shop.serve_forever, args=(0.01,))
        serving.start()
        yield shop
        shop.delivers.set()
        shop.shutdown()
        serving.join()


@pytest.fixture(scope="module")
def server(model: OpenAIServer, home: Path) -> Iterator[ServerProcess]:
    opened = {"MANIPLE_FETCH__ALLOW_PRIVATE": "127.0.0.0/8", "MANIPLE_BROWSER__ENABLED": "true"}
    with server_process(environment(model.base_url, home, **opened), home) as process:
        yield process


def buying(shop: Shop) -> dict[str, list[dict]]:
    click = {**use("click_element", index="index of Buy the hat"), "text": "The button buys."}
    return shop_script(use("go_to_url", url=f"{shop.url}/"), click, done("A hat is bought."))


def place_in(outer: Locator, inner: Locator) -> tuple[float, float, float, float]:
    """Where one element lies in another, in fractions of that one's size."""
    whole, part = outer.bounding_box(), inner.bounding_box()
    assert whole is not None and part is not None
    left, top = (part["x"] - whole["x"]) / whole["width"], (part["y"] - whole["y"]) / whole["height"]
    return left, top, part["width"] / whole["width"], part["height"] / whole["height"]


@pytest.mark.slow
def test_the_action_is_marked_on_the_picture_while_it_is_done_on_any_width(
    page: Page, model: OpenAIServer, shop: Shop
):
    model.reset(buying(shop))
    page.set_viewport_size({"width": 1600, "height": 900})
    ask(page, "Buy a hat")
    view = page.get_by_role("region", name="Browser")
    picture = view.get_by_role("img", name="Shop: clicks “Buy the hat”")
    mark = view.locator(".mark.acting")
    expect(picture).to_be_visible()
    expect(view.locator(".address")).to_have_text(f"Address: {shop.url}/")
    expect(view.get_by_text("The button buys.")).to_be_visible()
    places = []
    for width in (1600, 375):
        page.set_viewport_size({"width": width, "height": 900})
        mark.scroll_into_view_if_needed()
        places.append(place_in(picture, mark))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert places == [pytest.approx(BUTTON, abs=0.02)] * 2
    view.get_by_role("button", name="Previous step").press("Enter")
    expect(picture).to_be_hidden()
    view.get_by_role("button", name="Follow live").press("Enter")
    expect(picture).to_be_visible()
    expect(view.get_by_role("button", name="Live")).to_be_focused()
    shop.delivers.set()
    standing(page, "Done")
    if page.locator(".handle[aria-expanded=false]").is_visible():
        page.locator(".handle").click()
    page.get_by_role("tab", name="Browser").click()
    expect(view).to_be_visible()


@pytest.mark.slow
def test_each_step_can_be_gone_back_to_by_keyboard_and_after_a_reload_all_of_it_is_a_film(
    page: Page, model: OpenAIServer, shop: Shop
):
    shop.delivers.set()
    model.reset(buying(shop))
    ask(page, "Buy a hat")
    standing(page, "Done")
    page.get_by_role("tab", name="Now").click()
    expect(page.get_by_text("3 steps")).to_be_visible()
    expect(page.get_by_role("region", name="Browser")).to_be_hidden()
    page.reload()
    page.get_by_role("tab", name="Browser").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    view = page.get_by_role("region", name="Browser")
    expect(view.get_by_role("img", name="Bought: finished: A hat is bought.")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    expect(view.get_by_role("status")).to_have_text("Step 2 of 3: clicks “Buy the hat”")
    picture = view.get_by_role("img", name="Shop: clicks “Buy the hat”")
    expect(picture).to_be_visible()
    assert place_in(picture, view.locator(".mark")) == pytest.approx(BUTTON, abs=0.02)
    slider = view.get_by_label("Step in the browser")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", f"Step 1 of 3: opens {shop.url}/")
    expect(view.get_by_text("Starting the browser…").first).to_be_visible()
    expect(view.locator(".mark")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    view.get_by_role("button", name="Play").press("Enter")
    expect(view.get_by_text("Step 3 of 3", exact=True)).to_be_visible()
    expect(view.get_by_role("button", name="Play")).to_be_visible()
