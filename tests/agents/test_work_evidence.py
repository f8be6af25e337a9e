"""Answers that only look like results: announced calls, and claims of work without a call."""

import pytest

from maniple.agents.work_evidence import find_announcement, find_unsupported
from tests.agents.work_claims import CLAIMED, HONEST


def test_at_most_one_in_ten_honest_answers_without_a_call_is_doubted():
    doubted = [answer for member, step, answer in HONEST if find_unsupported(member, step, step, answer)]
    assert len(doubted) <= 2, doubted


def test_four_in_five_claims_of_work_without_a_call_are_found():
    missed = [answer for member, step, answer in CLAIMED if not find_unsupported(member, step, step, answer)]
    assert len(missed) <= 4, missed


def test_no_case_announces_a_call():
    assert not [answer for *_, answer in (*HONEST, *CLAIMED) if find_announcement(answer)]


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "python", "arguments": {"code": "print(1)"}}',
        '```json\n{"tool": "run_it", "parameters": {"code": "1"}}\n```',
        '[{"name": "bash", "arguments": {"cmd": "ls"}}]',
        '{"tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}',
        "I run it.\n```tool_code\nprint(1)\n```",
        'Here it is.\n\n<tool_call>{"name": "unknown_tool", "arguments": {}}</tool_call>',
        "<function_calls><invoke name='x'></invoke></function_calls>",
        '[TOOL_CALLS] [{"name": "x", "arguments": {}}]',
    ],
)
def test_a_call_written_as_text_is_recognised(answer):
    assert find_announcement(answer) == "call"


@pytest.mark.parametrize(
    "answer",
    [
        "The data is loaded. Now I run it:",
        "Jetzt führe ich das Skript aus:",
        "Je lance le calcul :",
        "现在我来运行：",
        "**Next step:**",
        "I have the plan. Now I run the tests.",
        "Let me check the file.",
        "Nun werde ich die Datei schreiben.",
        "Je vais lancer le script.",
        "现在我来运行代码。",
        "接下来，我将打开网页。",
    ],
)
def test_an_answer_that_ends_by_announcing_is_recognised_in_several_languages(answer):
    assert find_announcement(answer) in {"colon", "words"}


@pytest.mark.parametrize(
    "answer",
    [
        "The result is 4.",
        "Let me know if you need more.",
        '{"name": "Ada", "born": 1815}',
        '```json\n{"action": "buy", "price": 3}\n```',
        "Such a model writes `<tool_call>` before the JSON, and the parser looks for it.",
        "Source: https://a.test/b",
        "Das Skript läuft jetzt.",
        "```python\nprint(1)\n```",
    ],
)
def test_answers_that_announce_nothing_are_left_alone(answer):
    assert find_announcement(answer) is None


def test_numbers_of_the_prompt_and_their_differences_are_supported():
    given = "A costs 1,200.50 euros and B 1.500 euros."
    assert not find_unsupported("coder", given, "Compare", "B (1500) costs 299.50 more than A (1200.5).")
    assert find_unsupported("coder", given, "Compare", "B costs 7 percent more.") == "7"
