"""`/claims`: what of the last answer is not supported, and why."""

import pytest

from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.render.run_text import summary_line
from maniple.events import (
    AgentEnded,
    AgentStarted,
    ChatMessage,
    ClaimsChecked,
    Event,
    MessageChunk,
    MessageDelta,
    RunStarted,
    RunStatusChanged,
    RunView,
    SessionState,
    TurnMark,
    record_of,
)
from maniple.store import Store
from tests.cli.test_source_lines import session_on, store  # noqa: F401 - a fixture
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio
SCORE = "*1 of 2 claims supported, 1 without support*"


def checked_claims() -> ClaimsChecked:
    supported = {"text": "It is old.", "row": "", "column": "", "verdict": "supported", "reason": ""}
    supported |= {"citations": [1], "passage": None, "mark": None}
    passage = {"source": 1, "text": "It is \x1b[31m503 m.", "text_index": 0, "start": 4}
    absent = {**supported, "text": "It is 730 m.", "verdict": "absent", "reason": "730 m is not there"}
    absent |= {"passage": passage, "mark": 1}
    citation = {"kind": "url", "text": "https://made.test", "reason": "was not opened", "mark": 2}
    counts = dict.fromkeys(ClaimsChecked.model_fields, 0)
    lists = {"claims": [supported, absent], "marked_citations": [citation], "unsearched": []}
    return ClaimsChecked.model_validate({**counts, **lists, "score": SCORE, "supported": 1, "absent": 1})


def events(agent: str, answer: str) -> list[Event]:
    mark = TurnMark("a")
    return [
        RunStarted(run_id="r", thread_id="t"),
        AgentStarted(agent_name=agent, agent_id="a").in_turn(mark),
        MessageChunk(message_id="m", delta=MessageDelta(content=answer)).in_turn(mark),
        checked_claims().in_turn(mark),
        AgentEnded(agent_name=agent, agent_id="a").in_turn(mark),
        RunStatusChanged(status="completed"),
        SessionState(messages=[ChatMessage(role="assistant", content=answer)]),
    ]


async def test_marked_claims_and_citations_are_listed_with_reason_and_passage(store: Store) -> None:  # noqa: F811
    thread = await store.threads.create(a_thread())
    session = session_on(store, thread.thread_id)
    before = await run_slash_command(session, "/claims")
    run = await store.runs.add(a_run(thread, status="completed", at=1.0))
    records = [record_of(one, number) for number, one in enumerate(events("reporter", f"A\n\n{SCORE}"), 1)]
    await store.events.append([(run.run_id, records)])
    shown = await run_slash_command(session, "/claims")
    assert "checked yet" in before
    assert shown.splitlines()[0] == SCORE.strip("*")
    assert [line for line in shown.splitlines() if line.startswith("- ")] == [
        "- absent: It is 730 m. [1]",
        "- url: https://made.test",
    ]
    assert "730 m is not there" in shown
    assert "503 m." in shown
    assert "\x1b" not in shown
    assert "- supported: It is old. [1]" in await run_slash_command(session, "/claims all")


@pytest.mark.parametrize(("answer", "is_named"), [(f"A\n\n{SCORE}", False), ("A", True)])
def test_a_score_that_is_not_in_the_answer_is_named_at_its_end(answer: str, is_named: bool) -> None:
    view = RunView()
    for event in events("manus", answer):
        view.apply(event)
    assert (SCORE.strip("*") in summary_line(view, 1.0)) == is_named
