"""What is asked of a plain interpreter after code has run in it."""

import pytest

from maniple.sandbox.backends.daytona import capture_last_value, parse_collected


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 1; x + 1  # two", 2),
        ("x = [\n 1,\n]\nx[0] + 1;", 2),
        ("y = 'é'; y + '''\n'''", "é\n"),
        ("def f():\r\n  return 2\r\nf()", 2),
        ("(  # why\n2\n)", 2),
        ("x = 2", None),
        ("if True:\n  2", None),
        ("", None),
    ],
)
def test_the_value_of_the_last_expression_is_retained(code, value):
    names = {}
    exec(capture_last_value(code), names)
    assert names.get("_maniple_value") == value


@pytest.mark.parametrize("code", ["1 +", "\0", "(" * 100_000])
def test_code_that_is_not_understood_is_left_as_it_is(code):
    assert capture_last_value(code) == code


@pytest.mark.parametrize(
    "printed",
    ["", "no", "[]", "[" * 100_000, '{"value": 1, "figures": {}}', '{"figures": [1, "*", ""]}'],
)
def test_what_an_interpreter_makes_up_is_nothing(printed):
    assert parse_collected(printed) == ("", ())
