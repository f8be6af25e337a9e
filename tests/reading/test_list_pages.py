import re
import time

import pytest

from maniple.reading.html import read_html
from tests.reading.list_pages import LIST_PAGES, URL, ListPage

_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]+)[^()]*\)")


@pytest.mark.parametrize("listed", [make() for make in LIST_PAGES], ids=lambda listed: listed.name)
def test_a_page_that_is_a_list_arrives_with_its_head_its_rows_and_the_way_on(listed: ListPage) -> None:
    document = read_html(listed.html, URL)
    assert document.title == "Parts in stock"
    assert [text for text in listed.present if text not in document.markdown] == []
    assert [text for text in listed.absent if text in document.markdown] == []
    found = {(text.replace("\\", ""), url) for text, url in _LINK.findall(document.markdown)}
    assert [link for link in listed.links.items() if link not in found] == []


ARTICLE = "".join(
    f"<p>{n} bridges were built over the river in the years after the war, which the city had planned long "
    "before, and all of them were of steel, as stone had become too dear for spans of that length.</p>"
    for n in range(8)
)
AROUND = {
    "next article": "<a rel=next href=/next-story>Next</a> <a rel=prev href=/last-story>Previous</a>",
    "head of a blog": "<div class=nav-links><a rel=next href=/2026/05/tower>The tower →</a></div>",
    "pages of the archive": "<p class=pagination><a href=/news?page=1>1</a><a href=/news?page=2>2</a></p>",
    "pages of comments": (
        '<div class=comments-pagination><a href="/story/bridge/comment-page-1#comments">1</a>'
        '<a href="/story/bridge/comment-page-2#comments">2</a></div>'
    ),
    "related stories": "<ul>"
    + "".join(f"<li><a href=/r{n}>Another story of the bridge {n}</a>" for n in range(12))
    + "</ul><a href=/more>More</a>",
    "related cards": "".join(
        f"<div class=card><h3><a href=/r{n}>Another story {n}</a></h3></div>" for n in range(12)
    )
    + "<a href=/more class=load-more>Load more</a>",
    "years of the archive": "<div>"
    + "".join(f"<a href=/{year}>{year}</a> " for year in range(2018, 2026))
    + "</div>",
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("place", ["after", "before"])
def test_an_article_does_not_gain_the_links_of_its_site(around: str, place: str) -> None:
    parts = [f"<article><h1>Bridges</h1>{ARTICLE}</article>", f"<div>{around}</div>"]
    html = "".join(parts if place == "after" else reversed(parts))
    head = "<title>Bridges</title><link rel=next href=/next-story>"
    markdown = read_html(f"{head}<body>{html}</body>", "http://news.test/story/bridge").markdown
    assert "7 bridges were built" in markdown
    assert _LINK.findall(markdown) == []


@pytest.mark.parametrize(
    ("url", "second"),
    [
        ("http://news.test/story/bridge", "?page=2"),
        ("http://news.test/story/bridge", "/story/bridge/2"),
        ("http://news.test/story/bridge.html", "/story/bridge-2.html"),
        ("http://news.test/story/bridge/3/", "/story/bridge/2/"),
    ],
)
def test_an_article_in_several_parts_arrives_with_the_links_to_the_others(url: str, second: str) -> None:
    html = f"<title>Bridges</title><article>{ARTICLE}</article><nav><b>1</b> <a href={second}>2</a></nav>"
    links = _LINK.findall(read_html(html, url).markdown)
    assert [text for text, _ in links] == ["2"]
    assert links[0][1].startswith("http://news.test/story/bridge")


def test_a_list_whose_pages_only_a_script_knows_arrives_with_their_labels_and_a_note() -> None:
    items = "".join(f"<li><a href=/part/{n}>Part {n}</a> in stock</li>" for n in range(9))
    pager = "<div><a href='javascript:go(1)'>1</a><b>2</b><a href='javascript:go(3)'>3</a></div>"
    markdown = read_html(f"<title>Parts</title><h1>All</h1><ul>{items}</ul>{pager}", URL).markdown
    first = markdown.splitlines()[0]
    assert "3 (no address" in first
    assert "javascript" not in markdown


@pytest.mark.parametrize("address", ["#", " # ", "#!", "javascript:go(3)"])
def test_a_control_that_only_a_script_acts_on_does_not_lead_to_the_page_itself(address: str) -> None:
    items = "".join(f"<li><a href=/part/{n}>Part {n}</a> in stock</li>" for n in range(9))
    html = f"<title>Parts</title><ul>{items}</ul><p>So on: <a href='{address}' onclick='go(3)'>Go on</a></p>"
    markdown = read_html(html, URL).markdown
    assert "Part 8" in markdown
    assert f"({URL}" not in markdown


def test_a_list_beyond_the_limit_of_length_arrives_with_the_way_on() -> None:
    items = "".join(f"<li><a href=/part/{n}>Part {n}</a> {'in stock ' * 9}</li>" for n in range(6_000))
    document = read_html(f"<title>Parts</title><ul>{items}</ul><a href='?page=3'>Next</a>", URL)
    assert document.note
    assert document.markdown.splitlines()[0].endswith("[Next](https://shop.test/parts/list?page=3)")


def test_a_front_page_arrives_with_the_way_on() -> None:
    posts = "".join(f"<article><h2><a href=/post/{n}>Post {n}</a></h2>{ARTICLE}</article>" for n in range(3))
    markdown = read_html(
        f"<title>Blog</title>{posts}<nav><a href=/page/2>Older posts</a></nav>", "http://b.test/"
    )
    assert ("Older posts", "http://b.test/page/2") in _LINK.findall(markdown.markdown)


HOSTILE = {
    "nested links": "<a href=?p=1><b>" * 1_000,
    "nested buttons": "<form><div>" * 2_000 + "<button name=a value=1>1</button>" * 2_000,
    "links side by side": "<ul>" + "<a href=?p=1>1</a>" * 10_000,
    "pagers in pagers": "<div class=pagination>" * 5_000 + "<a href=?p=1>Next</a>" * 1_000,
    "links in lists": "<li><a href=?p=2>2</a> 3" * 1_000,
    "cards": "<a href=/1><div><h3>A</h3></div></a>" * 1_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
def test_a_page_of_nothing_but_links_is_read_in_seconds(html: str) -> None:
    begun = time.process_time()
    read_html(f"<title>Parts</title>{html}", URL)
    assert time.process_time() - begun < 20
