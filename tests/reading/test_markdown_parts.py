import pytest

from maniple.crawler.article import Article, ArticleSection
from maniple.reading.markdown import find_part, split_parts

BOOK = (
    "Before.\n\n# One\n\na\n\n## Inner [link](http://x.test)\n\nb\n\n```sh\n# no heading\n```\n\n# Two\n\nc"
)


def test_a_document_is_parted_at_its_headings_and_nothing_is_lost() -> None:
    found = split_parts(BOOK, "Book", 1_000)
    assert [(part.heading, part.level) for part in found] == [
        ("Book", 0),
        ("One", 1),
        ("Inner link", 2),
        ("Two", 1),
    ]
    assert "\n\n".join(part.markdown for part in found) == BOOK


def test_no_more_headings_than_an_outline_can_use_part_a_document() -> None:
    found = split_parts("# a\n" * 300_000, "T", 12_000)
    assert len(found) < 10_200
    assert sum(part.markdown.count("# a") for part in found) == 300_000


def test_text_without_headings_is_parted_at_paragraphs_only() -> None:
    lines = "\n\n".join(f"# {n} is a comment" + "x" * 40 for n in range(20))
    found = split_parts(lines, "notes.txt", 300, headed=False)
    assert found[1].heading == f"notes.txt (2 of {len(found)})"
    assert all(len(part.markdown) <= 300 for part in found)
    assert "\n\n".join(part.markdown for part in found) == lines


def test_code_that_is_parted_is_closed_and_opened_again() -> None:
    found = split_parts("```\n" + "x = 1\n" * 200 + "```", "Code", 300)
    assert all(part.markdown.startswith("```\nx") and part.markdown.endswith("x = 1\n```") for part in found)
    assert sum(part.markdown.count("x = 1") for part in found) == 200


@pytest.mark.parametrize(
    ("section", "number"),
    [
        ("3", 3),
        ("# Two", 4),
        ("two", 4),
        ("inner", 3),
        ("LINK", 3),
        ("5", None),
        ("0", None),
        ("none", None),
        (" ", None),
    ],
)
def test_a_section_is_named_by_its_number_or_its_heading(section: str, number: int | None) -> None:
    assert find_part(section, split_parts(BOOK, "Book", 1_000)) == number


def outline(sections: list[ArticleSection]) -> list[str]:
    text = Article("http://x.test", "Book", "Words.", tuple(sections)).text
    return [line for line in text.split("\n") if line[:1].isdecimal()]


def test_an_outline_of_many_sections_shows_the_upper_ones_with_what_is_under_them() -> None:
    sections = [ArticleSection(f"Part {n}", 1 if n % 10 == 0 else 2, 100) for n in range(100)]
    assert outline(sections)[:2] == ["1. Part 0 (1,000 characters)", "11. Part 10 (1,000 characters)"]
    assert len(outline(sections)) == 10


def test_an_outline_of_many_equal_sections_shows_some_of_them() -> None:
    lines = outline([ArticleSection(f"Page {n}", 2, 100) for n in range(1, 301)])
    assert lines[:2] == ["1. Page 1 (800 characters)", "9. Page 9 (800 characters)"]
    assert len(lines) <= 40
