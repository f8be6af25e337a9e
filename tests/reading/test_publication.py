import time

import pytest

from maniple.reading.dates import find_date, find_date_in_address, parse_date
from maniple.reading.html import parse_html, read_html
from maniple.reading.publication import Publication
from maniple.reading.title_lines import find_date_below_title, find_published_date
from tests.reading.article_shapes import SHAPES
from tests.reading.more_article_shapes import MORE_SHAPES

_FIELDS = ("published", "author", "publisher")


@pytest.mark.parametrize("field", _FIELDS)
def test_the_facts_of_article_pages_are_found(field: str) -> None:
    wrong = []
    for shape in SHAPES:
        found = getattr(read_html(shape.html, shape.url), field)
        if found != getattr(shape, field):
            wrong.append((shape.name, found))
    assert len(SHAPES) >= 60
    assert len(wrong) <= len(SHAPES) * 0.05, wrong


@pytest.mark.parametrize("field", _FIELDS)
def test_the_facts_of_pages_of_many_systems_and_languages_are_found(field: str) -> None:
    found = {one.name: getattr(read_html(one.html, one.url), field) for one in MORE_SHAPES}
    wrong = [(one.name, found[one.name]) for one in MORE_SHAPES if found[one.name] != getattr(one, field)]
    assert len(wrong) <= len(MORE_SHAPES) * 0.05, wrong


@pytest.mark.parametrize(
    "name", ["future_meta", "ld_event", "copyright_only", "history", "ld_epoch", "place"]
)
def test_a_wrong_date_or_name_is_never_given_for_a_missing_one(name: str) -> None:
    shape = next(one for one in MORE_SHAPES if one.name == name)
    reading = read_html(shape.html, shape.url)
    assert (reading.published, reading.author) == (shape.published, shape.author)


def test_a_date_of_update_is_not_the_one_of_publication() -> None:
    assert find_published_date("Updated: 9 June 2021 | Published: 4 March 2020") == "2020-03-04"
    assert find_published_date("4 March 2020, modifié le 9 juin 2021") == "2020-03-04"
    assert find_published_date("Last updated on 9 June 2021") == ""


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("4 marca 2020", "2020-03-04"),
        ("Wed Mar  4 10:00:00 UTC 2020", "2020-03-04"),
        ("4 марта 2020 г.", "2020-03-04"),
        ("٤ مارس ٢٠٢٠", "2020-03-04"),
        ("2020. március 4.", "2020-03-04"),
        ("ngày 4 tháng 3 năm 2020", "2020-03-04"),
        ("4 मार्च 2020", "2020-03-04"),
        ("Mon, 07/08/2013", "2013-07-08"),
        ("Wed, 07/08/2013", "2013-08-07"),
        ("Published on 12 March 2024", "2024-03-12"),
        ("Mar. 3rd, 2021 at noon", "2021-03-03"),
        ("le 1er août 2022", "2022-08-01"),
        ("2. Jänner 2020", "2020-01-02"),
        ("3 de octubre de 2018", "2018-10-03"),
        ("2024年3月9日 10時", "2024-03-09"),
        ("Tue, 12 Mar 2024 10:00:00 GMT", "2024-03-12"),
        ("31.02.2024", ""),
        ("13/04/2023", "2023-04-13"),
        ("03/04/2023", ""),
        ("call 2024-555-1234", ""),
        ("nothing", ""),
    ],
)
def test_dates_are_read_in_many_forms(text: str, date: str) -> None:
    assert find_date(text) == date


def test_an_ambiguous_date_is_read_as_its_page_writes_dates() -> None:
    assert find_date("03/04/2023", month_first=True) == "2023-03-04"
    assert find_date("03/04/2023", month_first=False) == "2023-04-03"


@pytest.mark.parametrize(
    ("value", "date"),
    [
        ("20240312", "2024-03-12"),
        ("20240312T1000", "2024-03-12"),
        ("1710230400", "2024-03-12"),
        ("2024-03", "2024-03"),
        ("March 2024", "2024-03"),
        ("2024", "2024"),
        ("2024-13-40", ""),
    ],
)
def test_a_field_may_hold_less_than_a_day(value: str, date: str) -> None:
    assert parse_date(value) == date


def test_an_address_has_a_date_only_as_a_part_of_its_path() -> None:
    assert find_date_in_address("https://a.test/2024/03/12/mill") == "2024-03-12"
    assert find_date_in_address("https://a.test/news-20240312.html") == "2024-03-12"
    assert find_date_in_address("https://a.test/mill?d=2024/03/12") == ""
    assert find_date_in_address("https://a.test/123420240399") == ""


def test_a_byline_goes_only_where_nothing_is_lost_with_it() -> None:
    text = "<p>The mill was built long ago, and it ground corn for three villages.</p>" * 8
    page = f"<title>Mill</title><article><h1>Mill</h1><p class='byline'>{{}}</p>{text}</article>"
    named = read_html(page.format("By Jane Doe"), "https://a.test/p")
    assert (named.author, "Jane Doe" in named.markdown) == ("Jane Doe", False)
    dated = read_html(page.format("By Jane Doe, 12 March 2024"), "https://a.test/p")
    assert (dated.author, dated.published) == ("Jane Doe", "2024-03-12")
    assert "12 March 2024" in dated.markdown
    unknown = read_html(page.format("our team in the north"), "https://a.test/p")
    assert (unknown.author, "our team" in unknown.markdown) == ("", True)


def test_dates_of_comments_and_related_stories_are_not_those_of_the_page() -> None:
    page = (
        "<title>Mill</title><article><h1>Mill</h1><p>The mill was built long ago.</p></article>"
        "<div class='comments'><time datetime='2020-01-01'>x</time></div>"
        "<aside><time datetime='2019-01-01'>y</time></aside>"
    )
    assert read_html(page, "https://a.test/p").published == ""


def test_an_address_is_never_an_author_or_a_publisher() -> None:
    head = "<meta name='author' content='https://a.test/x'><meta property='og:site_name' content='https://a.test'>"
    reading = read_html(f"<title>Mill</title>{head}<p>The mill.</p>", "https://a.test/p")
    assert (reading.author, reading.publisher) == ("", "")


def test_hostile_metadata_is_read_in_bounded_time() -> None:
    nested = '{"@graph":' * 400 + "1" + "}" * 400
    page = (
        f"<title>M</title><script type='application/ld+json'>{nested}</script>"
        + f"<div class='byline'>{'<b>By ' * 20_000}"
        + "<time datetime='x'>" * 5_000
    )
    begun = time.process_time()
    read_html(page, "https://a.test/p")
    assert time.process_time() - begun < 30


def test_the_line_names_only_what_is_known() -> None:
    assert Publication().line == ""
    assert Publication("2024", "", "The Daily").line == "Published: 2024; Publisher: The Daily"


def test_a_letter_of_a_mailing_list_has_the_date_of_its_head() -> None:
    head = "<h1>[dev] Locking</h1><b>Ida Berg</b><br><i>Mon May 1 10:00:00 UTC 2023</i>"
    page = f"<title>[dev] Locking</title>{head}<hr><pre>Does the lock hold during fsync? It does.</pre>"
    assert read_html(page, "https://a.test/dev/1").published == "2023-05-01"


def test_lines_below_a_title_are_read_in_bounded_time() -> None:
    page = f"<h1>Mill</h1>{'<div><i></i><b>x</b></div>' * 60_000}"
    started = time.process_time()
    find_date_below_title(parse_html(page), "2026-01-01")
    assert time.process_time() - started < 2
