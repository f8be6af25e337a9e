"""Labels of outcomes in a text that is streamed in pieces."""

import random

import pytest

from maniple.agents.outcome_labels import LabelStream
from maniple.agents.task import MISSING_IN_IT, NEEDED_FOR_IT
from tests.agents.outcome_answers import DONE, DONE_AFTER, FAILED_AFTER, PARTIAL, PARTIAL_AFTER


def streamed(*pieces: str) -> str:
    stream = LabelStream()
    return "".join([*(stream.feed(piece) for piece in pieces), stream.end()])


SHOWN = {
    "It is 3.\n\nPARTIAL: the rate of May": f"It is 3.\n\n{MISSING_IN_IT} the rate of May",
    "It is 3.\n**PARTIAL:** the rate\nNEEDS: a key\n": (
        f"It is 3.\n{MISSING_IN_IT} the rate\n{NEEDED_FOR_IT} a key\n"
    ),
    "- NEEDS (from the user): a key": f"{NEEDED_FOR_IT} a key",
    "## NEEDS\n\n- a key": f"{NEEDED_FOR_IT}\n\n- a key",
    "MISSING: the tea": f"{MISSING_IN_IT} the tea",
    "NEEDS:": NEEDED_FOR_IT,
    "It is 3.\n\nPARTIAL: nothing": "It is 3.\n\n",
    "STATUS: PARTIAL - the rate": f"{MISSING_IN_IT} the rate",
    "It is 3.\nPARTIALLY COMPLETED: the rate": "It is 3.\nPartially completed: the rate",
    "It is 3.\nPARTIAL (the rate of May)": f"It is 3.\n{MISSING_IN_IT} the rate of May",
    f"NEEDS ({'a key, ' * 20}please): it": f"{NEEDED_FOR_IT} it",
    "# Fees\n\nPartly done: the rate\n\nIt is 3.": "# Fees\n\nPartly done: the rate\n\nIt is 3.",
    "Es ist 3.\n\nTEILWEISE: der Kurs": "Es ist 3.\n\nTeilweise: der Kurs",
    "C'est 3.\n\nPARTIEL : le taux": "C'est 3.\n\nPartiel : le taux",
    "部分完成：五月的汇率": "部分完成：五月的汇率",
}
UNCHANGED = [
    "It is 3.",
    "",
    "4",
    "N",
    "NEEDSmore: 3\nPARTIALLY true.\nPART: 1\nNeeds: 2 eggs",
    "```\nNEEDS: root\n```\n**Bold** text\n- a list\n> a quotation\n| a | table |\n",
    "MISSING: the step 'Read' was not completed.",
    "It says PARTIAL: x and NEEDS: y in a line.",
    "It is 3.\nPartial: x\n部分：x\nMissing: y",
    "1. one\n2. two\r\n\r\n~~~\nPARTIAL: x\n~~~",
]


@pytest.mark.parametrize(("text", "shown"), [*SHOWN.items(), *((one, one) for one in UNCHANGED)])
def test_labels_are_shown_in_words_however_the_text_is_cut(text: str, shown: str) -> None:
    chance = random.Random(7)
    assert streamed(text) == shown
    assert streamed(*text) == shown
    for _ in range(50):
        cuts = sorted(chance.randrange(len(text) + 1) for _ in range(3))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert streamed(*pieces) == shown


def test_ordinary_words_are_not_held_back() -> None:
    stream = LabelStream()
    assert [stream.feed(piece) for piece in ("It", " is", " 3.")] == ["It", " is", " 3."]


@pytest.mark.parametrize("text", PARTIAL + PARTIAL_AFTER + FAILED_AFTER + DONE + DONE_AFTER)
def test_a_text_in_pieces_is_shown_as_a_whole_one(text: str) -> None:
    assert streamed(*text) == streamed(text)


@pytest.mark.parametrize("text", [one for one in DONE + DONE_AFTER if not one.startswith("Partial:")])
def test_a_text_about_a_subject_is_shown_as_it_is(text: str) -> None:
    assert streamed(*text) == text
