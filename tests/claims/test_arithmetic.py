"""Calculations that a text writes out."""

import time

import pytest

from maniple.claims.arithmetic import check_totals, find_equations


@pytest.mark.parametrize(
    "text",
    [
        "799 × 0.88 = 703.12",
        "12 + 30 + 5 = 47",
        "3.842 / 2.976 = 1.29",
        "(2 + 3) × 4 = 20",
        "200 × 15 % = 30",
        "9.4 - 8 = 1.4 million",
        "1/3 = 33 %",
        "5 Mio. + 3 Mio. = 8 Mio.",
        "Revenue rose from 120 to 150, a rise of 25 %.",
        "Die Kosten stiegen von 120 auf 150 Mio. Euro (+25 %).",
        "从120增至150，增长25%",
        "96 of 412 (23.3%) belong to it.",
    ],
)
def test_a_right_calculation_holds(text):
    assert [one.holds for one in find_equations(text)] == [True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("799 × 0.88 = 730.12", 703.12),
        ("12 + 30 + 5 = 48", 47),
        ("Revenue rose from 120 to 150, a rise of 20 %.", 25),
        ("Les coûts sont passés de 120 à 150 millions, soit une hausse de 20 %.", 25),
        ("从120增至150，增长20%", 25),
        ("30 of 120 (35 %) were late.", 25),
    ],
)
def test_a_wrong_calculation_is_found_with_its_result(text, expected):
    (found,) = find_equations(text)
    assert not found.holds
    assert float(found.expected) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "The formula x = 5 holds for y = 7.",
        "It scored 3-2 = a win.",
        "E = mc2",
        "from 2019 to 2024, an increase of 13.6 %",
        "The pages 10-20 = chapter two",
        "1,000 - 20% = 800",
        "CO2 + H2O = H2CO3",
    ],
)
def test_what_only_looks_like_a_calculation_is_none(text):
    assert find_equations(text) == []


def test_the_total_of_a_column_is_added_up():
    rows = [["North", "1,200", "3 %"], ["South", "800", "5 %"], ["Total", "2,100", "4 %"]]
    (total,) = check_totals(["Region", "Visits", "Share"], rows)
    assert (total.row, total.column, total.holds, int(total.expected)) == (2, 1, False, 2000)
    rows[-1][1] = "2,000"
    assert [one.holds for one in check_totals(["Region", "Visits", "Share"], rows)] == [True]


def test_a_table_with_parts_has_no_total():
    rows = [["North", "1,200"], ["of which city", "800"], ["Total", "1,200"]]
    assert check_totals(["Region", "Visits"], rows) == []


@pytest.mark.parametrize(
    "text", ["1" * 100_000, " " * 100_000, "1 + " * 25_000, "1 = " * 25_000, "(" * 100_000]
)
def test_hostile_text_takes_linear_time(text):
    begun = time.process_time()
    find_equations(text)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(("text", "holds"), [("160 × 1000 = 160,000", True), ("160 × 1000 = 16,000", False)])
def test_a_power_of_ten_may_be_written_out(text, holds):
    [found] = find_equations(text)
    assert found.holds is holds
