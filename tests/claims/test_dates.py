"""Dates in many languages, and which of them agree."""

import time

import pytest

from maniple.claims.dates import agree_dates, find_dates
from maniple.claims.figures import find_figures
from maniple.reading.dates import find_date as find_page_date
from maniple.reading.month_names import list_months


def parts(text: str, language: str = "") -> list[tuple[int | None, int | None, int | None]]:
    return [(one.year, one.month, one.day) for one in find_dates(text, language)]


@pytest.mark.parametrize(
    "text",
    [
        "12 March 2024",
        "March 12, 2024",
        "2024-03-12",
        "12.03.2024",
        "12. März 2024",
        "le 12 mars 2024",
        "12-Mar-2024",
        "12 de marzo de 2024",
        "12 marzo 2024",
        "12 de março de 2024",
        "12 maart 2024",
        "12 марта 2024 года",
        "2024年3月12日",
        "2024년 3월 12일",
        "12 marca 2024",
        "12 tháng 3 năm 2024",
        "令和6年3月12日",
        "１２.３.２０２４",
    ],
)
def test_a_day_is_read_in_every_written_form(text):
    assert parts(text) == [(2024, 3, 12)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("opened in 2019", (2019, None, None)),
        ("in June 2026.", (2026, 6, None)),
        ("on 14 March", (None, 3, 14)),
        ("FY2024", (2024, None, None)),
        ("2024-03", (2024, 3, None)),
    ],
)
def test_what_a_date_leaves_out_is_none(text, expected):
    assert parts(text) == [expected]


@pytest.mark.parametrize(
    ("text", "months", "years"),
    [
        ("Q3 2024", 3, 1),
        ("third quarter of 2024", 3, 1),
        ("2024年第三季度", 3, 1),
        ("H2 2024", 6, 1),
        ("the 1990s", 1, 10),
        ("2023/24", 1, 2),
        ("90年代", 1, 10),
    ],
)
def test_periods_have_a_length(text, months, years):
    assert [(one.months, one.years) for one in find_dates(text)] == [(months, years)]


@pytest.mark.parametrize(
    "text",
    [
        "last year",
        "2,000 people",
        "$1990",
        "version 3.11.7",
        "you may 12 times",
        "3 out of 10",
        "1.2024 t",
        "2000 kg",
        "2000 €",
    ],
)
def test_relative_dates_and_other_numbers_are_no_dates(text):
    assert parts(text) == []


def agreed(claim: str, source: str) -> bool:
    return agree_dates(find_dates(claim)[0], find_dates(source)[0])


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("in 2024", "12 March 2024"),
        ("March 2024", "2024-03-12"),
        ("12 March 2024", "12. März 2024"),
        ("12 March 2024", "03/12/2024"),
        ("14 March 2021", "14 March"),
        ("Q1 2024", "February 2024"),
        ("the 1990s", "in 1994"),
        ("2024", "2023/24"),
    ],
)
def test_a_date_agrees_with_one_that_says_more(claim, source):
    assert agreed(claim, source)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("12 March 2024", "March 2024"),
        ("March 2024", "in 2024"),
        ("14 March 2020", "14 March 2021"),
        ("4 March 2021", "14 March 2021"),
        ("July 2026", "June 2026"),
        ("Q2 2024", "February 2024"),
        ("2024年11月30日", "2024年12月31日"),
        ("1994", "the 1990s"),
    ],
)
def test_a_date_does_not_agree_with_another_or_a_vaguer_one(claim, source):
    assert not agreed(claim, source)


def test_two_years_in_short_are_both_read():
    assert parts("2019–24") == [(2019, None, None), (2024, None, None)]


def test_the_parts_of_a_date_are_no_figures():
    text = "On 25 March 2024, 300 of them, and in Q3 2024, came in 2019."
    assert [figure.text for figure in find_figures(text)] == ["300", "2019"]


@pytest.mark.parametrize(
    "piece", ["1", " ", "1.", "1/", "1 ", "2024-", "2024 ", "may ", "5 May ", "2024年", "a"]
)
def test_hundred_kilobytes_of_anything_are_searched_in_linear_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    find_dates(text)
    assert time.process_time() - started < 4


def test_months_have_the_same_names_here_and_on_pages():
    months = list_months()
    assert len(months) > 600
    for name, month in months.items():
        text = f"12 {name} 2021"
        assert [(one.month, one.day) for one in find_dates(text)] == [(month, 12)]
        assert find_page_date(text) == f"2021-{month:02}-12"


@pytest.mark.parametrize(
    ("text", "language", "month"),
    [
        ("lag sie 2020 bei fünf", "de", None),
        ("we set 2020 as the limit", "en", None),
        ("cerca de out 2020", "pt", 10),
        ("od sie 2020", "pl", 8),
        ("Kosten pro 2020", "de", None),
        ("In May 2020 it rose", "en", 5),
        ("en mai 2020", "fr", 5),
        ("em março 2020", "", 3),
    ],
)
def test_a_small_word_before_a_year_is_a_month_only_in_its_language(text, language, month):
    assert [(one.year, one.month) for one in find_dates(text, language)] == [(2020, month)]


def test_a_persons_name_before_a_number_is_no_day():
    assert find_dates("Marta 5 goals", "en") == []
