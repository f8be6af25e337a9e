from io import BytesIO

import pytest
from PIL import Image

from maniple.browser.drivers.observation import MAX_WIDTH_PIXELS, draw_marks, observe_page, take_screenshot
from tests.browser.looking.site import TOKENS, Site

pytestmark = pytest.mark.anyio

PAGE = "<style>body{margin:0;background:#fff}</style>" + (
    "<button style='position:absolute;left:200px;top:300px;width:200px;height:80px'></button>"
)


def opened(jpeg: bytes) -> Image.Image:
    picture = Image.open(BytesIO(jpeg))
    assert picture.format == "JPEG"
    return picture.convert("RGB")


def is_coloured(picture: Image.Image, place: tuple[int, int]) -> bool:
    pixel = picture.getpixel(place)
    assert isinstance(pixel, tuple)
    return max(pixel) - min(pixel) > 60


async def test_the_picture_frames_and_numbers_what_can_be_acted_on(site: Site) -> None:
    seen = await site.show(PAGE)
    plain = opened(await take_screenshot(site.tab, seen, marks=False))
    picture = opened(await take_screenshot(site.tab, seen, marks=True))
    assert picture.size == plain.size == (1280, 800)
    corner, label = (200, 340), (396, 296)
    assert is_coloured(picture, corner) and not is_coloured(plain, corner)
    assert is_coloured(picture, label) and not is_coloured(plain, label)
    assert not is_coloured(picture, (300, 340))


async def test_what_is_out_of_the_window_is_not_marked(site: Site) -> None:
    seen = await site.show("<div style=height:1000px></div><button>Below</button>")
    assert [element.box for element in seen.elements] == [None]
    picture = opened(await take_screenshot(site.tab, seen, marks=True))
    assert picture.getcolors() == [(1280 * 800, (255, 255, 255))]


async def test_a_wide_window_is_scaled_down(site: Site) -> None:
    await site.show(PAGE)
    await site.tab.set_viewport_size({"width": 2000, "height": 1000})
    try:
        seen = await observe_page(site.tab, None, tokens=TOKENS)
        for marks in (True, False):
            picture = opened(await take_screenshot(site.tab, seen, marks=marks))
            assert picture.size == (MAX_WIDTH_PIXELS, 640)
    finally:
        await site.tab.set_viewport_size({"width": 1280, "height": 800})


async def test_marks_at_the_edges_stay_inside() -> None:
    from maniple.browser.page import Element

    written = BytesIO()
    Image.new("RGB", (100, 60), "white").save(written, "JPEG")
    corners = [(0.0, 0.0, 0.01, 0.01), (0.99, 0.99, 1.0, 1.0), (0.5, 0.5, 0.5, 0.5)]
    elements = [Element(9_000 + at, "button", "x", box=box) for at, box in enumerate(corners)]
    assert opened(draw_marks(written.getvalue(), elements)).size == (100, 60)
