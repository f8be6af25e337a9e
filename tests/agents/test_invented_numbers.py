"""A small model computes with the numbers that it was given."""

import pytest

from maniple.agents.invented_numbers import find_invented, find_invented_operand, find_uncalculated


@pytest.mark.parametrize(
    ("program", "given", "found"),
    [
        ("print(7*9)", "Und das mal 7?", "9"),
        ("print(4*7)", "1+3=? It is 4. Und das mal 7?", ""),
        ("x = 1_000 * 7", "mal 7", ""),
        ("print(7*13.5)", "mal 7", "13.5"),
        ("print(7*1.2)", "7 times 1,2", ""),
        ("print(0.19*80)", "19 % of 80", ""),
        ("def f(a, b):\n    return a * b\nprint(f(7, 9))", "mal 7", "9"),
        ("print('63')", "mal 7", "63"),
        ("print(sum(range(1, 33)) - 7)", "mal 7", "33"),
        ("print([7, 9, 11])", "mal 7", ""),
        ("for n in range(9):\n    print(7 * n)", "mal 7", ""),
        ("this is no program 99", "mal 7", ""),
    ],
)
def test_only_a_calculation_with_a_number_that_nobody_gave_is_found(program, given, found):
    assert find_invented_operand(program, given) == found


def test_a_text_has_the_numbers_of_what_was_given():
    assert find_invented("Compute 4*7 in 2 steps", "It is 4. times 7") == ""
    assert find_invented("Compute 5*7", "It is 4. times 7") == "5"


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("print(7)", "7"),
        ("x = 7\nprint(x)", "7"),
        ("print(7*2)", ""),
        ("print(hex(7))", ""),
        ("print('seven')", ""),
        ("print(len([7]))", ""),
        ("no program 7", ""),
    ],
)
def test_a_program_that_only_prints_a_number_calculates_nothing(program, found):
    assert find_uncalculated(program) == found
