"""A plan is accepted in plain words of several languages, and by nothing that may ask for a change."""

import pytest

from maniple.tools.decisions import is_plan_acceptance

ACCEPTED = (
    "looks good, go ahead",
    "Looks good!",
    "OK go ahead, please.",
    "Please go ahead",
    "Yes, do it",
    "Passt so, leg los!",
    "Ja, bitte",
    "d'accord, allez-y",
    "C'est parfait, merci",
    "Sí, adelante",
    "de acuerdo",
    "好的，开始吧。",
    "没问题",
    {"type": "accept"},
)
OTHERS = (
    "",
    "please",
    "looks good?",
    "looks good, but let the coder compute it",
    "ok, in French",
    "go ahead without step 2",
    "don't go ahead",
    "not good",
    "passt nicht",
    "pas d'accord",
    "no está bien",
    "不行",
    "好的，但是用中文",
    {"type": "reject"},
    "yes " * 40,
)


@pytest.mark.parametrize("answer", ACCEPTED, ids=str)
def test_plain_words_accept_a_plan(answer: object) -> None:
    assert is_plan_acceptance(answer)


@pytest.mark.parametrize("answer", OTHERS, ids=str)
def test_what_may_ask_for_a_change_does_not(answer: object) -> None:
    assert not is_plan_acceptance(answer)
