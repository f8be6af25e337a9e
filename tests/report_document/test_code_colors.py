"""Colours of code."""

import pytest

from maniple.report_document.code_colors import CodeColorer

PYTHON = '\n\n# Grow.\ndef grow(p0):\n\treturn p0 * 2 + "é"  \n\n'


def test_the_parts_of_code_have_their_kinds():
    kinds = {one.text: one.kind for one in CodeColorer().color(PYTHON, "python")}
    assert {name: kinds[name] for name in ("# Grow.", "def", "grow", "2", "*")} == {
        "# Grow.": "comment",
        "def": "keyword",
        "grow": "name",
        "2": "number",
        "*": "",
    }


@pytest.mark.parametrize("language", ["python", "js", "sql", "yaml", "html", "bash", "diff", "nonsense", ""])
@pytest.mark.parametrize("text", [PYTHON, "", "\n", "\r\nx\r\n", "<a b='c'>&amp;</a>", "\x00\ud800"])
def test_no_character_of_code_is_lost(language: str, text: str):
    assert "".join(one.text for one in CodeColorer().color(text, language)) == text


def test_code_beyond_the_limits_has_no_colours():
    colorer = CodeColorer()
    assert len(colorer.color("x = 1\n" * 4_000, "python")) == 1
    several = [len(colorer.color("x = 1\n" * 3_000, "python")) for _ in range(7)]
    assert several[0] > 1 and several[-1] == 1


@pytest.mark.parametrize("text", ["a.b" * 1_000, "\t\n" * 500])
def test_code_for_which_a_lexer_takes_too_long_has_no_colours(text: str):
    assert len(CodeColorer().color(text, "typescript")) == 1
