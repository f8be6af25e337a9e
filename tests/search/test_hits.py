from dataclasses import replace

import pytest

from maniple.search.merging import (
    deduplicate,
    find_kind,
    label_hits,
    merge_ranked,
    sort_newest_first,
)
from maniple.search.provider import (
    CONTENT_CHARACTERS,
    TITLE_CHARACTERS,
    SearchHit,
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


def paper(title: str, url: str, **known: str) -> SearchHit:
    return SearchHit(title, url, known.pop("content", ""), kind="paper", **known)  # pyright: ignore


def test_a_paper_of_two_engines_is_one_hit_with_the_fullest_abstract() -> None:
    short = paper("Arches", "https://doi.org/10.1000/x", doi="10.1000/x", content="Short.", source="a")
    full = paper("Arches of stone", "https://b.test/1", doi="10.1000/X", content="Longer text.", source="b")
    [hit] = merge_ranked([[short], [replace(full, full_text_url="https://b.test/1.pdf", author="Ito")]], 5)
    assert (hit.title, hit.url, hit.content) == ("Arches", "https://doi.org/10.1000/x", "Longer text.")
    assert (hit.source, hit.author, hit.full_text_url) == ("a, b", "Ito", "https://b.test/1.pdf")
    assert hit.score == 1.0


@pytest.mark.parametrize(
    ("other", "works"),
    [
        ({"title": "On  stone ARCHES.", "published": "2020-05", "author": "K. Ito"}, 1),
        ({"title": "On stone arches", "published": "2020", "author": ""}, 1),
        ({"title": "On stone arches", "published": "2020", "author": "Lena Vogt"}, 2),
        ({"title": "On stone arches", "published": "2021", "author": "Kei Ito"}, 2),
        ({"title": "On stone arches", "published": "", "author": "Kei Ito"}, 2),
    ],
)
def test_a_title_and_a_year_with_a_common_author_is_one_work(other: dict[str, str], works: int) -> None:
    first = paper("On stone arches", "https://a.test/1", published="2020-01-31", author="Kei Ito")
    assert len(deduplicate([first, paper(url="https://b.test/2", **other)])) == works


def test_papers_whose_short_title_says_nothing_stay_apart() -> None:
    hits = [paper("Errata", f"https://{name}.test/", published="2020") for name in "ab"]
    assert deduplicate(hits) == hits


def test_a_hit_that_joins_two_known_works_makes_them_one() -> None:
    by_doi = paper("A longer title", "https://a.test/", doi="10.1000/x")
    by_title = paper("On stone arches", "https://b.test/", published="2020")
    both = paper("On stone arches", "https://c.test/", doi="10.1000/x", published="2020-02")
    [hit] = merge_ranked([[by_doi, by_title], [both]], 5)
    assert (hit.url, hit.score, hit.published) == ("https://a.test/", 1.0, "2020")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://de.wikipedia.org/wiki/Bogen", "encyclopaedia"),
        ("https://doi.org/10.1000/x", "paper"),
        ("https://old.reddit.com/r/x", "forum"),
        ("https://notreddit.com/", None),
        ("folder:a.md", None),
        ("http://[::1", None),
    ],
)
def test_a_kind_is_known_by_the_host_and_never_guessed(url: str, kind: str | None) -> None:
    assert find_kind(url) == kind
    assert label_hits([make_hit("x", url, "")], "one")[0].kind == (kind or "")


def test_the_newest_come_first_and_undated_hits_keep_their_order() -> None:
    days = ("", "2020", "2023-04-01", "soon", "2023-05")
    hits = [paper(day, f"https://a.test/{at}", published=day) for at, day in enumerate(days)]
    assert [hit.title for hit in sort_newest_first(hits)] == ["2023-05", "2023-04-01", "2020", "", "soon"]


@pytest.mark.parametrize(
    ("value", "day"),
    [("2025-05-02T09:00:00", "2025-05-02"), ("2025-05", "2025-05"), ("May 2, 2025", ""), (None, "")],
)
def test_the_day_that_an_engine_gives_is_shown(value: object, day: str) -> None:
    [hit] = parse_hits(
        [{"url": "https://a.test/", "page_age": value}], content="content", published="page_age"
    )
    assert hit.published == day
