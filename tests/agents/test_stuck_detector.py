"""Agents that are stuck are distinguished from those that only look like it."""

import time
from itertools import chain

import pytest

from maniple.agents.stuck import END_AT, MAX_NUDGES, NUDGE_AT, PATIENCE, StuckDetector
from tests.agents.patterns import PROGRESS, STUCK, A, Answer, B, C, alone, did, times


def findings_of(answers: list[Answer]) -> list[str]:
    """What the detector says after each answer, until the step ends: nothing, "nudge" or "end"."""
    detector, said = StuckDetector(), []
    for answer in answers:
        stuck = detector.observe(answer)
        said.append("" if stuck is None else "end" if stuck.is_final else "nudge")
        if said[-1] == "end":
            break
    return said


def test_there_are_thirty_of_each():
    assert (len(STUCK), len(PROGRESS)) == (30, 30)


@pytest.mark.parametrize("pattern", STUCK)
def test_who_is_stuck_is_nudged_and_then_ended(pattern):
    said = findings_of(STUCK[pattern])
    assert said[-1] == "end"
    assert said[-2] == "nudge"
    assert said.count("nudge") >= 2


@pytest.mark.parametrize("pattern", PROGRESS)
def test_who_gets_on_is_left_alone(pattern):
    assert set(findings_of(PROGRESS[pattern])) == {""}


def test_the_third_of_the_same_answers_is_one_too_many_and_the_fifth_the_last():
    assert findings_of(times(9, A)) == ["", "", "nudge", "nudge", "end"]
    assert (NUDGE_AT["same"], END_AT["same"]) == (3, 5)


def test_two_in_turn_are_nudged_after_three_rounds():
    assert findings_of(times(12, A, B)) == [""] * 5 + ["nudge", "nudge", "end"]


def test_who_waits_may_wait_three_times_as_long():
    waiting = did("job_status", "pending", job="j")
    said = findings_of(times(40, waiting))
    assert said.index("nudge") + 1 == PATIENCE * NUDGE_AT["same"]
    assert len(said) == PATIENCE * END_AT["same"]


def test_something_new_ends_the_nudging():
    assert findings_of([*times(3, A), [B], [C]]) == ["", "", "nudge", "", ""]


def test_who_gets_stuck_time_and_again_in_a_step_is_not_nudged_for_ever():
    new_ways = [times(3, did("read", f"page {n}", page=n)) for n in range(9)]
    said = findings_of(list(chain(*new_ways)))
    assert said.count("nudge") == MAX_NUDGES
    assert said[-1] == "end"


def test_the_words_name_the_tools_and_no_more_than_three():
    calls = [did(f"tool_{n}" + "x" * 100, "same") for n in range(5)]
    detector = StuckDetector()
    stuck = [detector.observe(calls) for _ in range(3)][-1]
    assert stuck is not None
    assert stuck.description.count("call of tool_0xxx") == 1
    assert "tool_3" not in stuck.description
    assert len(stuck.description) < 350


def test_the_words_do_not_take_the_arguments_for_the_result():
    detector = StuckDetector()
    stuck = [detector.observe([did("read", "not found", page=7)]) for _ in range(3)][-1]
    assert stuck is not None
    assert stuck.description.endswith('arguments: {"page": 7}')


@pytest.mark.parametrize("piece", ["a1 ", "x.", "[took ", "in 1", "request id: ", " ", "no ", "1", "\n"])
def test_long_results_are_looked_at_in_no_time(piece):
    sizes = (24_000, 5_000_000)
    noise = [did("read", piece * (size // len(piece)) + f"{n}", page=n) for n in range(3) for size in sizes]
    begun = time.process_time()
    assert set(findings_of(alone(*noise))) == {""}
    assert time.process_time() - begun < 2
