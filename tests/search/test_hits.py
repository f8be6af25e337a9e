import pytest

from maniple.search.hits import CONTENT_CHARACTERS, TITLE_CHARACTERS, hit, hits_of, is_web_address, same_page
from maniple.search.merge import merged
from tests.search.shelves import pages


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.test/x", "http://www.A.test:80/x/#part"),
        ("https://a.test", "https://a.test:443/"),
        ("https://a.test/?q=1", "https://a.test/?utm_source=x&q=1&gclid=2"),
    ],
)
def test_addresses_of_the_same_page(one: str, other: str) -> None:
    assert same_page(one) == same_page(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.test/x", "https://a.test/X"),
        ("https://a.test/?q=1", "https://a.test/?q=2"),
        ("https://a.test/", "https://a.test:8443/"),
        ("https://a.test/", "https://b.a.test/"),
        ("folder:a.md", "folder:b.md"),
        ("http://[::1", "http://[::2"),
    ],
)
def test_addresses_of_different_pages(one: str, other: str) -> None:
    assert same_page(one) != same_page(other)


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
    assert hits_of([{"url": url, "title": "x"}], content="content") == []


def test_what_an_engine_sends_is_cut_and_made_whole() -> None:
    sent = [
        {"url": "https://a.test/", "title": "t" * 9_000, "content": "\ud83d " + "c" * 90_000, "score": "high"}
    ]
    [found] = hits_of(sent, content="content", score="score")
    assert (len(found.title), len(found.content)) == (TITLE_CHARACTERS, CONTENT_CHARACTERS)
    assert found.content.startswith("\ufffd ")
    assert found.score is None


def test_of_a_flood_of_results_only_the_first_are_looked_at() -> None:
    assert len(hits_of(({"url": f"https://a.test/{n}"} for n in range(10_000)), content="content")) == 100


def test_a_page_without_title_is_named_by_its_address() -> None:
    assert hit(None, "https://a.test/", None).title == "https://a.test/"


def test_what_many_found_far_up_comes_first() -> None:
    lists = [pages("a", "b", "c"), pages("d", "c", "a"), pages("c")]
    assert [one.title for one in merged(lists, 3)] == ["C", "A", "D"]


def test_a_page_first_in_every_list_fits_best() -> None:
    assert [one.score for one in merged([pages("a", "b"), pages("a")], 5)] == [1.0, 0.4919]
