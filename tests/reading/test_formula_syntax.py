import pytest

from maniple.reading.formula_syntax import find_display_formula

LONGEST = 10_000


@pytest.mark.parametrize(("opening", "closing"), [("$$", "$$"), (r"\[", r"\]")])
def test_a_formula_of_ten_thousand_characters_is_one(opening: str, closing: str) -> None:
    text = f"{opening}{'x+' * (LONGEST // 2)}{closing}"
    found = find_display_formula(text, 0)
    assert found is not None
    assert found.end == len(text)
    assert find_display_formula(f"{opening}{'x' * (LONGEST + 1)}{closing}", 0) is None


def test_an_environment_of_ten_thousand_characters_is_a_formula() -> None:
    text = rf"\begin{{align}}{'x&' * (LONGEST // 2)}\end{{align}}"
    found = find_display_formula(text, 0)
    assert found is not None
    assert found.end == len(text)
