"""Of a long page, what speaks of the question."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.evidence import extract
from maniple.evidence.extract import PASSAGE_CHARACTERS, passages

FILLER = "Nothing of any interest is said in this paragraph about gardens. " * 8


def page(*middle: str) -> str:
    parts = ["# Drinks", "Source [1]: https://e.test/", FILLER, "## Garden", *[FILLER] * 10]
    return "\n\n".join([*parts, *middle, "## Tools", *[FILLER] * 10])


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    found = extract("# A\n\n\ntext  ", "tea", 100)
    assert (found.text, found.left_out, found.is_whole) == ("# A\n\n\ntext  ", (), True)


def test_the_answer_comes_under_its_heading_after_the_beginning_in_short() -> None:
    text = page("## Prices of tea", "Black tea costs 3 euros.", "## Opening hours", "From nine.")
    found = extract(text, "What does tea cost?", 2_000)
    assert found.text.startswith("# Drinks\n\nSource [1]: https://e.test/\n\nNothing of any interest")
    assert "\n\n[…]\n\n" in found.text
    assert "\n\n## Prices of tea\n\nBlack tea costs 3 euros.\n\n" in found.text
    assert found.text.endswith("\n\n[…]")
    assert "From nine" not in found.text
    assert list(found.left_out) == ["Opening hours", "Tools"]


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    text = page("The garden of the garden has a garden.", "A quince grows here.")
    chosen = extract(text, "quince garden", 1_000).text
    assert "A quince grows here." in chosen


def test_a_passage_is_found_by_its_heading() -> None:
    chosen = extract(page("## Warranty", "Two years from the day of purchase."), "warranty", 1_500).text
    assert "## Warranty\n\nTwo years from the day of purchase." in chosen


def test_chinese_is_found_by_pairs_of_characters() -> None:
    filler = "这里没有什么值得一读的内容，只是一些普通的文字而已。" * 12
    text = "\n\n".join(["# 页面", *[filler] * 20, "红茶的价格是三欧元。", *[filler] * 20])
    assert "红茶的价格是三欧元。" in extract(text, "请问红茶价格多少？", 1_500).text


def test_a_tools_note_on_its_result_stays_at_the_end() -> None:
    notice = "[Cut: section 2 of 7. Sections: Prices; Hours.]"
    assert extract(page(notice), "quince", 1_000).text.count(notice) == 0
    assert extract(f"{page()}\n\n{notice}", "quince", 1_000).text.endswith(f"[…]\n\n{notice}")


@pytest.mark.parametrize("asked", ["飞艇是什么时候建成的", ""])
def test_without_a_word_in_common_the_page_is_read_from_its_beginning_as_far_as_there_is_room(
    asked: str,
) -> None:
    text = "\n\n".join(["# Zeppelins", *(f"Ship {n} flew over the lake. " * 12 for n in range(60))])
    found = extract(text, asked, 6_000).text
    assert 5_400 < len(found) <= 6_000
    shown = found.removesuffix("\n\n[…]")
    assert shown != found
    assert text.startswith(shown)


def test_room_that_the_passages_on_the_question_leave_is_filled_from_the_beginning() -> None:
    found = extract(page("## Tea", "Tea costs 3 euros."), "tea", 6_000).text
    assert "Tea costs 3 euros." in found
    assert found.startswith("\n\n".join(["# Drinks", "Source [1]: https://e.test/", FILLER.strip()]))
    assert 5_000 < len(found) <= 6_000


def test_code_with_blank_lines_stays_whole() -> None:
    code = "```python\ntea = 3\n\n\nprint(tea)\n```"
    assert code in extract(page(code), "tea", 1_500).text


def test_a_paragraph_without_end_is_cut_at_sentences() -> None:
    found = passages("One sentence of the endless paragraph. " * 200)
    assert all(passage.text.rstrip().endswith("paragraph.") for passage in found)
    assert max(len(passage.text) for passage in found) <= PASSAGE_CHARACTERS


@given(
    st.lists(st.sampled_from(["# a", "## tea", "text tea", "", "```", "| a | b |", "x" * 3_000, "茶" * 50]))
)
def test_an_extract_keeps_to_its_length_and_invents_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = extract(text, "tea 茶", 1_000)
    assert len(found.text) <= 1_100
    for piece in found.text.split("[…]"):
        for line in piece.splitlines():
            assert line.strip() in text


@pytest.mark.parametrize("unit", ["a", "# h\n", "[", "```\n", "\n", "桥梁", "a b. ", "#"])
def test_a_megabyte_is_extracted_within_5_seconds_of_cpu(unit: str) -> None:
    before = time.process_time()
    extract(unit * (1_000_000 // len(unit)), "price of 桥梁 h a", 6_000)
    assert time.process_time() - before < 5
