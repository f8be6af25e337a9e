"""What a look at a page costs: an ordinary page and one of three thousand controls, with their pictures."""

import statistics
import time

from maniple.browser import Page, open_browser
from maniple.browser.listing import estimate_tokens
from maniple.config import BrowserSettings
from tests.crawler.web import Reply, open_site

ROUNDS = 15
CONTROLS = 3_000
SETTINGS = BrowserSettings(allow_private=("127.0.0.0/8",))


async def measure() -> dict[str, float]:
    """Medians in milliseconds, and the tokens of the ordinary page's elements."""
    pages = {"/": Reply(_ordinary()), "/large": Reply(_large())}
    async with open_site(pages) as site, open_browser(SETTINGS) as browser:
        page = await browser.page("bench")
        ordinary, text = await _looks(page, f"{site.url}/")
        large, _ = await _looks(page, f"{site.url}/large")
        return {
            "state_ordinary_ms": ordinary,
            "state_3000_controls_ms": large,
            "state_ordinary_tokens": estimate_tokens(text),
        }


async def _looks(page: Page, url: str) -> tuple[float, str]:
    await page.act({"action": "go_to_url", "url": url})
    text = (await page.observe()).interactive_elements
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        state = await page.observe()
        seconds.append(time.perf_counter() - begun)
        assert state.screenshot
    return round(statistics.median(seconds) * 1000, 1), text


def _ordinary() -> str:
    """A shop's page: a menu, filters, a form, forty offers, a table, a long text and a footer."""
    menu = "".join(f"<a href=/m{at}>Department {at}</a> " for at in range(12))
    filters = "".join(f"<label><input type=checkbox> Maker {at}</label><br>" for at in range(15))
    cards = "".join(
        f"<article><h3>Offer {at}</h3><p>Made of oak and steel, delivered within {at % 9} days.</p>"
        f"<a href=/o{at}>Details</a> <button>Add to cart</button></article>"
        for at in range(40)
    )
    rows = "".join(f"<tr><td>Size {at}<td>{at * 3} cm<td>{at * 7} kg</tr>" for at in range(20))
    text = "".join(f"<p>{'Terms that hold for all that we sell. ' * 12}</p>" for _ in range(20))
    style = "<style>main{display:grid;grid-template-columns:repeat(4,1fr)}body{font:16px sans-serif}</style>"
    fields = "<input name=q placeholder=Search><select><option>Price<option>Name</select><button>Go</button>"
    return (
        f"<!doctype html><title>Shop</title>{style}<nav>{menu}</nav><form>{fields}</form>"
        f"<aside>{filters}</aside><main>{cards}</main><table>{rows}</table>{text}<footer>{menu}</footer>"
    )


def _large() -> str:
    style = "<style>button{width:60px;height:20px;padding:0;font-size:8px}</style>"
    return f"<!doctype html><title>All</title>{style}" + "".join(
        f"<button>Item {at}</button>" for at in range(CONTROLS)
    )
