"""The notes that are added to the output of code are told from what the code printed."""

import pytest

from maniple.sandbox import ExecutionResult
from maniple.sandbox.notes import drop_notes, is_state, read_notes

LOST = "The sandbox ended since the last call: variables and background processes are gone; files are kept."
RESULTS = (
    ExecutionResult(0, "4\n", "", 3.2, lost=LOST),
    ExecutionResult(139, "4\n", "", 0.1),
    ExecutionResult(1, "4\n", "", 30, timed_out=True),
    ExecutionResult(1, "4\n", "", 30, timed_out=True, lost=LOST),
)


@pytest.mark.parametrize("result", RESULTS)
def test_only_what_the_code_printed_is_left(result):
    assert drop_notes(result.text()) == "4"


def test_a_silent_program_has_printed_nothing():
    assert drop_notes(ExecutionResult(0, "", "", 0.1, lost=LOST).text()) == ""


@pytest.mark.parametrize(
    "printed", ["[1, 2, 3]", "[sandbox]", "[took]", "[exit codes: 1]", "[a figure]", "[stderr"]
)
def test_brackets_that_code_prints_are_its_own(printed):
    assert drop_notes(f"{printed}\n[took 1.0 s]") == printed


def test_a_note_about_the_sandbox_is_recognised():
    text = RESULTS[0].text().splitlines()[-1]
    assert is_state(text)
    assert not is_state(f"{text}\nThe result is 4.")


@pytest.mark.parametrize("result", RESULTS)
def test_the_notes_are_what_the_code_has_not_printed(result):
    lines = [line.strip() for line in result.text().splitlines() if line.strip()]
    assert [*map(str.strip, read_notes(result.text()).splitlines())] == [one for one in lines if one != "4"]
