"""Digits with separators, number words, and Chinese numerals."""

from decimal import Decimal

import pytest

from maniple.claims.numerals import find_number_words, fold_digits, read_chinese, read_digits, split_list


def values(token: str, language: str = "") -> list[Decimal]:
    return [value for value, _ in read_digits(token, language)]


@pytest.mark.parametrize(
    "token",
    ["1,234,567", "1.234.567", "1 234 567", "1'234'567", "1’234’567", "12,34,567", "1\u202f234\u202f567"],
)
def test_thousands_separators_of_all_kinds_are_read(token):
    assert values(token, "de")[0] in (1234567, 1234567)


def test_one_separator_before_three_digits_has_two_readings():
    assert values("1.136") == [1136, Decimal("1.136")]
    assert values("1.136", "en") == [Decimal("1.136"), 1136]
    assert values("1,136") == [1136, Decimal("1.136")]
    assert values("1,136", "en") == [1136]


@pytest.mark.parametrize(
    ("token", "value", "step"),
    [
        ("23,7", "23.7", "0.1"),
        ("23.75", "23.75", "0.01"),
        ("1.234,5", "1234.5", "0.1"),
        ("1,234.50", "1234.50", "0.01"),
        ("1 234,567", "1234.567", "0.001"),
        ("0.125", "0.125", "0.001"),
        ("2019", "2019", "1"),
    ],
)
def test_decimal_marks_are_read_with_the_step_of_the_last_digit(token, value, step):
    assert read_digits(token) == ((Decimal(value), Decimal(step)),)


@pytest.mark.parametrize("token", ["3.11.7", "192.168.0.1", "007", "1234567890123456789"])
def test_versions_addresses_and_identifiers_have_no_value(token):
    assert values(token) == []


def test_a_list_without_spaces_is_split():
    assert list(split_list("12.5,13.5,17", 3)) == [(3, "12.5"), (8, "13.5"), (13, "17")]
    assert list(split_list("1,234.5", 0)) == [(0, "1,234.5")]


def test_spaced_groups_may_be_several_numbers_where_spaces_are_unusual():
    assert values("100 200", "en") == [100200, 100, 200]
    assert values("100 200", "fr") == [100200]


def test_digits_of_other_scripts_keep_their_offsets():
    assert fold_digits("１２％ ٣٫٥") == "12% 3.5"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("twenty-five", 25),
        ("one hundred and twenty", 120),
        ("fünfundzwanzig", 25),
        ("tweeëntwintig", 22),
        ("treinta y cinco", 35),
        ("two thirds", "0.666666"),
        ("drei Viertel", "0.75"),
        ("la moitié", "0.5"),
    ],
)
def test_numbers_in_words_are_read(text, value):
    assert [one.value for one in find_number_words(text)][-1] == Decimal(value)


@pytest.mark.parametrize(
    ("numeral", "value"),
    [("一百二十", "120"), ("十五", "15"), ("三点五", "3.5"), ("二〇一九", "2019"), ("一千零五", "1005")],
)
def test_chinese_numerals_are_read(numeral, value):
    assert read_chinese(numeral) == Decimal(value)
