"""Words that negate, in many languages."""

import pytest

from maniple.evidence.negation import has_negation, is_negation
from maniple.evidence.wording import wording

NEGATED = (
    "It did not open.",
    "It didn't open.",
    "It can’t be opened.",
    "Es wurde nie geöffnet.",
    "Ce n'est guère ouvert.",
    "Il ne s'ouvre jamais.",
    "Nunca se abrió.",
    "Non è stato aperto.",
    "Não abriu.",
    "Het ging niet open.",
    "Den öppnade aldrig.",
    "Den åbnede ikke.",
    "Se ei avautunut.",
    "Nie otwarto go.",
    "Nikdy se neotevřel.",
    "Nu s-a deschis.",
    "Nem nyílt meg.",
    "Açık değil.",
    "Δεν άνοιξε.",
    "Он не открылся.",
    "Він ніколи не відкрився.",
    "لم يفتح.",
    "Nó không mở.",
    "它没有开放。",
    "开かない。",
    "열리지 않았다.",
)
PLAIN = (
    "It opened in note 5 of the north.",
    "Le 5 mai, il a ouvert.",
    "Es wurde im Mai geöffnet.",
    "De brug ging pas in 2020 open.",
    "它不仅开放，而且不断增长。",
    "特别的未来，无论如何非常好。",
    "A sample of n individuals",
)


@pytest.mark.parametrize("text", NEGATED)
def test_a_negation_is_found(text: str):
    assert has_negation(text, with_denials=False)


@pytest.mark.parametrize("text", PLAIN)
def test_other_words_are_none(text: str):
    assert not has_negation(text)


@pytest.mark.parametrize("text", ["It didn't open.", "它不 开放", "They will not", "열리지 않았다"])
def test_a_negation_is_found_in_a_wording(text: str):
    assert has_negation(wording(text))


@pytest.mark.parametrize("text", ["The board rejected it.", "Er lehnte ab.", "董事会拒绝了。"])
def test_a_denial_is_one_unless_only_words_are_looked_for(text: str):
    assert has_negation(text)
    assert not has_negation(text, with_denials=False)


def test_a_word_is_a_negation_as_a_whole():
    assert [is_negation(one) for one in ("not", "nicht", "inte", "note", "north")] == [True] * 3 + [False] * 2
