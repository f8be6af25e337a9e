"""The clauses of a sentence that belong to its figures."""

import re
import time
from dataclasses import dataclass

import pytest

from maniple.claims.segments import FigureClause, belongs_to_other, split_segments


@dataclass(frozen=True)
class Span:
    start: int
    end: int


def spans(text: str) -> list[Span]:
    return [Span(found.start(), found.end()) for found in re.finditer(r"\d[\d.,]*\d|\d", text)]


def clause(text: str, figure: str) -> FigureClause:
    start = text.index(figure)
    return FigureClause(text, Span(start, start + len(figure)), spans(text))


@pytest.mark.parametrize(
    ("claimed", "found", "figure"),
    [
        ("Karsund cost 158 million.", "Karsund cost 212 million; Harwick cost 158 million.", "158"),
        ("Lindham had 1214.", "Harwick was first, with 1214, followed by Lindham with 987.", "1214"),
        ("Süd wurde 1974 gebaut.", "Nord wurde 1974 gebaut, Süd 1991.", "1974"),
        ("Northern sales were 7.", "Southern sales were 7, Northern ones 5.", "7"),
    ],
)
def test_a_figure_of_another_clause_is_noticed(claimed, found, figure):
    assert belongs_to_other(clause(claimed, figure), clause(found, figure))


@pytest.mark.parametrize(
    ("claimed", "found", "figure"),
    [
        ("The Harwick one cost 158 million.", "Karsund cost 212 million; Harwick cost 158 million.", "158"),
        ("It cost 158 million, less than Karsund.", "Karsund cost 212 million; Harwick 158 million.", "158"),
        ("Karsund paid more than 158 million.", "Karsund cost 212 million; Harwick cost 158 million.", "158"),
        ("It fell to 121 litres.", "Use fell from 127 to 121 litres.", "121"),
        ("In 2023 it carried 4579 people.", "It carried 4872 in 2024, up from 4579 in 2023.", "4579"),
        ("The line carried 4579 before.", "The line carried 4872 people, up from 4579 in May.", "4579"),
        ("The cheaper building cost 158.", "Karsund cost 212; Harwick cost 158.", "158"),
    ],
)
def test_paraphrases_and_comparisons_are_left_alone(claimed, found, figure):
    assert not belongs_to_other(clause(claimed, figure), clause(found, figure))


def test_two_figures_that_changed_places_are_noticed():
    found = "Harwick had 1214 passengers, and Lindham had 987."
    claimed = "Harwick had 987 passengers, and Lindham had 1214."
    assert belongs_to_other(clause(claimed, "987"), clause(found, "987"))
    assert belongs_to_other(clause(claimed, "1214"), clause(found, "1214"))
    assert not belongs_to_other(clause(found, "987"), clause(found, "987"))


def test_figures_without_a_boundary_between_them_are_not_separated():
    text = "It fell from 127 to 121 litres."
    assert split_segments(text, spans(text)) == []


def test_many_figures_take_linear_time():
    text = ", ".join(f"{number} places" for number in range(20_000))
    found = spans(text)
    begun = time.process_time()
    assert len(split_segments(text, found)) == len(found)
    assert time.process_time() - begun < 5
