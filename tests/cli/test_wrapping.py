"""Words are not broken, by the width of the characters on a terminal."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from maniple.cli.render.document_text import SafeMarkdown
from maniple.cli.render.wrapping import WordText, hang_words, line_breaks, longest_word
from tests.cli.processes import PROMPT, environment, on_terminal
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
_WORDS = st.lists(st.text(alphabet="abcdef日本語。「」éü-", min_size=1, max_size=12), min_size=1, max_size=30)


def printed(renderable: object, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=True, color_system=None).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


@given(_WORDS, st.integers(min_value=26, max_value=60))
def test_a_word_that_fits_into_a_line_is_never_broken_and_nothing_is_lost(
    words: list[str], width: int
) -> None:
    text = " ".join(words)
    lines = printed(WordText(text), width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    latin = [word for word in words if word.isascii()]
    shown = " ".join(lines).split()
    assert all(any(word in one for one in shown) for word in latin)


def test_chinese_breaks_between_characters_and_no_line_begins_with_a_full_stop() -> None:
    text = "太阳能发电增长很快。" * 4
    lines = printed(WordText(text), 21)
    assert "".join(lines) == text
    assert all(cell_len(line) > 16 for line in lines[:-1]), "the lines are filled"
    assert not any(line.startswith("。") for line in lines)
    assert longest_word("太阳能。word") == 4 and line_breaks("", 5) == []


def test_a_longer_line_of_a_list_goes_on_below_its_text_and_an_address_stays_whole() -> None:
    address = "https://a.example/" + "x" * 40
    shown = hang_words(Text(f"one two three\n    {address}\n"), 9).plain
    assert shown == f"one two\nthree\n    {address}\n"
    assert hang_words(Text("  one two three"), 9).plain == "  one two\n  three"


@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_words_of_a_table_are_whole_in_columns_or_below_each_other(width: int) -> None:
    words = ["Photovoltaikanlagen", "Übertragungsnetzbetreiber", "Einspeisevergütungen", "kurz", "太阳能"]
    heads = " | ".join(f"Kopf{number}" for number in range(5))
    table = f"| {heads} |\n|{'---|' * 5}\n| {' | '.join(words)} |\n| {' | '.join(reversed(words))} |\n"
    shown = "\n".join(printed(SafeMarkdown(table), width))
    assert all(shown.count(word) >= 2 for word in words)
    assert all(cell_len(line) <= width for line in shown.splitlines())
    assert all(f"Kopf{number}" in shown for number in range(5))


def test_the_words_of_a_column_stay_whole_although_another_has_long_cells() -> None:
    table = f"| A | B |\n|---|---|\n| {'some words ' * 30} | Photovoltaikanlagen im Jahr |\n"
    lines = printed(SafeMarkdown(table), 50)
    assert any("Photovoltaikanlagen" in line for line in lines)
    assert all(cell_len(line) <= 50 for line in lines)


async def test_on_a_terminal_no_word_of_an_answer_or_a_list_of_commands_is_broken(tmp_path: Path) -> None:
    words = [f"{letter * 7}word" for letter in "abcdefghijklmnopqrst"]
    with serving({"coordinator": [reply(" ".join(words))]}) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("words?", "✔ completed")
            answer = terminal.text()
            await terminal.enter("/help", "Ctrl-D")
            assert await terminal.leave() == 0
    assert all(word in answer for word in words)
    listed = terminal.text().rpartition("/help")[0].partition("lists commands and keys")[2]
    assert "/threads" in listed
    assert all(cell_len(line) <= 100 for line in listed.replace("\r", "").split("\n"))
