import re

import pytest

from maniple.browser.listing import estimate_tokens
from tests.browser.looking.site import Site

pytestmark = pytest.mark.anyio

FEED = "".join(f"<li>Post {at} <a href=/{at}>Open {at}</a> <button>Like</button></li>" for at in range(3_000))


def left_out(text: str) -> int:
    return sum(int(number.replace(",", "")) for number in re.findall(r"… ([\d,]+) more", text))


@pytest.mark.slow
async def test_a_feed_of_thousands_is_folded_with_a_hint_to_see_more(site: Site) -> None:
    look = await site.show(f"<h1>Feed</h1><ul>{FEED}</ul><footer><button>Imprint</button></footer>")
    posts = len(re.findall(r"^Post \d+", look.text, re.M))
    assert posts + left_out(look.text) == 3_000
    assert 20 <= posts < 100
    assert look.text.endswith("scroll down or use scroll_to_text")
    assert estimate_tokens(look.text) < 4_000


async def test_after_scrolling_what_is_above_is_folded_too(site: Site) -> None:
    await site.show(f"<ul>{FEED}</ul>")
    await site.tab.evaluate("scrollTo(0, 30_000)")
    look = await site.look()
    first, *_, last = look.text.splitlines()
    assert first.endswith("scroll up or use scroll_to_text")
    assert last.endswith("scroll down or use scroll_to_text")
    assert look.scroll_info.pixels_above == 30_000
    posts = [int(element.name.split()[1]) for element in look.elements if element.name != "Like"]
    assert posts == list(range(posts[0], posts[0] + len(posts)))
    assert left_out(look.text) + len(posts) == 3_000


async def test_the_window_comes_first_where_not_all_can_be_shown(site: Site) -> None:
    rows = "".join(f"<p>Text {at} of many words <button>Row {at}</button></p>" for at in range(200))
    await site.show(rows)
    await site.tab.evaluate("scrollTo(0, 2_000)")
    look = await site.look(tokens=700)
    assert estimate_tokens(look.text) <= 700
    in_window = [element for element in look.elements if element.box]
    assert len(in_window) >= 15
    assert all(int(element.name.split()[1]) > 40 for element in look.elements)


async def test_three_thousand_controls_in_one_window_stay_within_the_tokens(site: Site) -> None:
    style = "<style>button{width:24px;height:12px;font-size:5px;padding:0}</style>"
    look = await site.show(style + "".join(f"<button>{at}</button>" for at in range(3_000)))
    assert estimate_tokens(look.text) <= 4_000
    # A machine under load may not get through all of them; then the text ends with a notice.
    assert len(look.elements) + left_out(look.text) == 3_000 or look.text.splitlines()[-1].startswith("(")


async def test_more_frames_than_are_shown_are_said(site: Site) -> None:
    look = await site.show("<button>Go</button>" + "<iframe srcdoc=Inner width=100 height=20></iframe>" * 35)
    assert look.text.count("Inner") < 35
    assert look.text.splitlines()[-1].startswith("(")


async def test_a_long_select_reports_its_choice_and_how_many_more(site: Site) -> None:
    options = "".join(f"<option {'selected' * (at == 150)}>C{at}" for at in range(200))
    look = await site.show(f"<select aria-label=Country>{options}</select>")
    assert '|C9|… 190 more|*C150">Country' in look.text


async def test_of_a_long_value_the_beginning_and_the_end_are_reported(site: Site) -> None:
    words = " ".join(f"word{at}" for at in range(500))
    look = await site.show(f"<textarea>{words}</textarea>")
    assert '"word0 word1' in look.text and 'word499"' in look.text
    assert len(look.text) < 400
