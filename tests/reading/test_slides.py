import pytest

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.formats import read_document
from tests.reading.files import archive, presentation


@pytest.fixture(scope="module")
def deck() -> MarkdownDocument:
    return read_document("zip", presentation(), "deck.pptx", None)


def test_each_slide_has_its_number_its_list_and_its_notes(deck: MarkdownDocument) -> None:
    first = deck.markdown.split("\n\n## Slide 2")[0]
    expected = "## Slide 1: Tolls\n\nLorries pay\n- nine crowns\n\nNotes of slide 1: Say it slowly."
    assert first == expected


def test_merged_cells_of_a_table_have_their_text_in_each_place(deck: MarkdownDocument) -> None:
    assert "| Year \\| sum | Year \\| sum |\n| --- | --- |\n| 2026 | 7 |" in deck.markdown


def test_a_chart_is_read_as_its_values(deck: MarkdownDocument) -> None:
    assert "|  | Lorries |\n| --- | --- |\n| May | 120.5 |\n| June | 99 |" in deck.markdown


def test_a_hidden_slide_is_named_and_not_read(deck: MarkdownDocument) -> None:
    assert "Secret" not in deck.markdown
    assert "Hidden slides" in deck.note
    assert "3" in deck.note


def test_a_damaged_presentation_is_said_to_be_damaged() -> None:
    with pytest.raises(UnreadableDocument, match="damaged presentation"):
        read_document("zip", archive({"ppt/presentation.xml": "<x/>"}), "deck.pptx", None)
