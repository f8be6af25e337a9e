import pytest

from maniple.search.chain import merge_ranked
from maniple.search.provider import (
    CONTENT_CHARACTERS,
    TITLE_CHARACTERS,
    deduplicate,
    is_web_address,
    make_hit,
    parse_hits,
)
from tests.search.fake_providers import pages


def test_a_page_is_reported_once_where_it_came_first() -> None:
    spellings = (
        "https://a.test/x",
        "https://b.test/",
        "http://www.A.test:80/x/?twclid=1#part",
        "https://a.test/%78",
    )
    assert [one.url for one in deduplicate([make_hit("t", url, "") for url in spellings])] == list(
        spellings[:2]
    )
    others = ("folder:a.md", "folder:b.md", "http://[::1", "http://[::2", "https://a.test/X")
    assert [one.url for one in deduplicate([make_hit("t", url, "") for url in others])] == list(others)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "javascript:alert(1)",
            "ftp://a.test/",
            "//a.test/",
            "https:///x",
            "https://[::1",
            "",
            "https://a b",
        ),
        *("https://a.test/\n", "https://a.test/\x1b[2J", f"https://a.test/{'x' * 2_100}"),
    ],
)
def test_what_is_no_web_address_is_no_hit(url: str) -> None:
    assert not is_web_address(url)
    assert parse_hits([{"url": url, "title": "x"}], content="content") == []


def test_what_an_engine_sends_is_cut_and_made_whole() -> None:
    sent = [
        {"url": "https://a.test/", "title": "t" * 9_000, "content": "\ud83d " + "c" * 90_000, "score": "high"}
    ]
    [found] = parse_hits(sent, content="content", score="score")
    assert (len(found.title), len(found.content)) == (TITLE_CHARACTERS, CONTENT_CHARACTERS)
    assert found.content.startswith("\ufffd ")
    assert found.score is None


def test_what_an_engine_writes_in_html_is_reported_as_text() -> None:
    sent = [
        {
            "url": "https://a.test/",
            "title": "Tom &amp; <b>Jerry</b>",
            "content": "<mark>1</mark> &lt; 2, Vec<T>",
        }
    ]
    [found] = parse_hits(sent, content="content")
    assert (found.title, found.content) == ("Tom & Jerry", "1 < 2, Vec<T>")


def test_of_a_flood_of_results_only_the_first_are_looked_at() -> None:
    assert len(parse_hits(({"url": f"https://a.test/{n}"} for n in range(10_000)), content="content")) == 100


def test_a_page_without_title_is_named_by_its_address() -> None:
    assert make_hit(None, "https://a.test/", None).title == "https://a.test/"


def test_what_many_found_far_up_comes_first() -> None:
    lists = [pages("a", "b", "c"), pages("d", "c", "a"), pages("c")]
    assert [one.title for one in merge_ranked(lists, 3)] == ["C", "A", "D"]


def test_a_page_first_in_every_list_fits_best() -> None:
    assert [one.score for one in merge_ranked([pages("a", "b"), pages("a")], 5)] == [1.0, 0.4919]
