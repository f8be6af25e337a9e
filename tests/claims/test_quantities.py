"""Whether a source's figure supports one of a report."""

from decimal import Decimal

import pytest

from maniple.claims.quantities import FigureKind, FigureMention, agree, find_coarse_step


def figure(
    value: str, kind: FigureKind = "number", unit="", *, step="", factor="1", **fields
) -> FigureMention:
    number = Decimal(value)
    last = Decimal(step) if step else Decimal(1).scaleb(int(number.as_tuple().exponent))
    return FigureMention(
        0, len(value), value, (number,), kind, unit, (last,), factor=Decimal(factor), **fields
    )


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        (figure("12.3"), figure("12.34")),
        (figure("1200000", step="100000", about="about"), figure("1183402")),
        (figure("1200000"), figure("1200400")),
        (figure("5000000", step="1000000", about="under"), figure("4872300")),
        (figure("4000000", step="100000", about="over"), figure("4050000")),
        (figure("5"), figure("-5")),
        (figure("12.30"), figure("12.3")),
    ],
)
def test_what_rounds_to_the_digits_given_agrees(claimed, found):
    assert agree(claimed, found)


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        (figure("12.5"), figure("12.34")),
        (figure("12.34"), figure("12.3")),
        (figure("4827300"), figure("4872300")),
        (figure("4900000", step="100000", about="over"), figure("4600000")),
        (figure("1000", about="about"), figure("1130")),
    ],
)
def test_what_does_not_round_to_the_digits_given_differs(claimed, found):
    assert not agree(claimed, found)


@pytest.mark.parametrize("kind", ["points", "factor", "number"])
def test_a_percentage_agrees_with_no_other_kind(kind):
    assert not agree(figure("5", "percent", "%"), figure("5", kind))


def test_a_percentage_agrees_with_a_printed_share_and_a_fraction_in_words():
    assert agree(figure("13.6", "percent", "%"), figure("0.13612"))
    assert agree(figure("13.6", "percent", "%"), figure("13.61"))
    assert agree(figure("25", "percent", "%"), figure("0.25", is_word=True))


def test_currencies_agree_with_themselves_and_with_their_symbol():
    assert agree(figure("5", "money", "USD"), figure("5", "money", "$"))
    assert not agree(figure("5", "money", "EUR"), figure("5", "money", "$"))
    assert agree(figure("100", "money", "EUR"), figure("100"))


def test_a_bare_number_agrees_by_its_digits_with_one_that_has_a_unit():
    assert agree(figure("5000", "quantity", "m", step="1000", factor="1000"), figure("5"))
    assert agree(figure("5"), figure("5000", "quantity", "m", factor="1000"))
    assert not agree(figure("5000", "quantity", "m", factor="1000"), figure("5", "quantity", "m"))


def test_temperatures_are_converted():
    assert agree(figure("20", "quantity", "degC"), figure("68", "quantity", "degF"))
    assert not agree(figure("20", "quantity", "degC"), figure("60", "quantity", "degF"))


def test_a_unit_in_a_denominator_may_be_left_out():
    assert agree(figure("2.16", "money", "EUR"), figure("2.16", "money", "EUR/m3"))


def test_the_coarse_step_is_that_of_the_last_digit_that_is_not_zero():
    assert find_coarse_step(Decimal(1200000), Decimal(1)) == 100000
    assert find_coarse_step(Decimal("12.30"), Decimal("0.01")) == Decimal("0.1")
    assert find_coarse_step(Decimal(0), Decimal(1)) == 1
