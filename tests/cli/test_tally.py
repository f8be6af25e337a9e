import pytest

from maniple.cli.render.run_state import Tally
from maniple.events import Event
from maniple.types import RunStatus
from tests.cli.events import agent, ending, model, review, small_talk, workflow


def tally_of(events: list[Event]) -> Tally:
    tally = Tally()
    for event in events:
        tally.count(event)
    return tally


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [("completed", 0), ("failed", 1), ("budget_exhausted", 4), ("interrupted", 3), ("cancelled", 130)],
)
def test_the_exit_status_says_how_the_run_ended(status: RunStatus, exit_code: int) -> None:
    assert tally_of(ending(status)).exit_code == exit_code


def test_the_answer_is_the_reporters_text_and_calls_and_tokens_are_summed() -> None:
    tally = tally_of(workflow())

    assert tally.answer == "# Sum\n\nThe answer is **4**.\n"
    assert tally.has_answer()
    assert (tally.model_calls, tally.input_tokens, tally.output_tokens) == (5, 500, 50)
    assert tally.summary() == "completed · 0.0 s · 5 model calls · 550 tokens (500 in, 50 out)"


def test_small_talk_is_an_answer_too() -> None:
    assert tally_of(small_talk("Hello there!")).answer == "Hello there!"


def test_a_report_that_was_begun_again_counts_once() -> None:
    first, second = model("reporter", "Half a rep"), model("reporter", "The whole report")
    again = [e.model_copy(update={"message_id": "2"}) if e.type == "message" else e for e in second]
    assert tally_of(agent("reporter", *first, *again)).answer == "The whole report"


@pytest.mark.parametrize("status", ["failed", "cancelled", "interrupted"])
def test_a_run_that_did_not_complete_has_no_answer_to_use(status: RunStatus) -> None:
    tally = tally_of([*agent("reporter", *model("reporter", "Half")), review(), *ending(status)])

    assert not tally.has_answer()
    assert tally.question == review()


def test_a_try_that_goes_on_with_a_broken_answer_loses_nothing_of_it() -> None:
    first, second = model("reporter", "It is ", "four."), model("reporter", reasoning=["Again."])
    thought = second[1].model_copy(update={"message_id": "second try"})
    assert tally_of(agent("reporter", *first[:2], thought, *first[2:])).answer == "It is four."
