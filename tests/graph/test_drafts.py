"""What is shown of the answers of coordinator and planner before they have ended (`docs/wire.md`)."""

import asyncio
import json
import time
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from maniple.events import MessageChunk, PlanChanged, RunView
from maniple.graph import RunOptions
from maniple.graph.nodes.coordinator import certain_text
from maniple.graph.plan import Plan
from maniple.graph.written_plan import normalize_plan, read_draft
from maniple.runs.turn import stream_run
from maniple.types import WORKERS
from tests.openai_server import call, reply
from tests.team import Scripted, data, drafts, joined_text, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
LONG = "Hello! I am well, thank you; and I wonder how you are on this fine day. What can I do for you?"
CALLS = (
    "handoff_to_planner()",
    "`handoff_to_planner()`",
    "functions.handoff_to_planner({})",
    "```python\nhandoff_to_planner()\n```",
    '{"name": "handoff_to_planner", "arguments": {"locale": "en"}}',
    '```json\n{"arguments": {"locale": "a locale that is as long as one likes, and longer"}, '
    '"name": "handoff_to_planner"}\n```',
    '<tool_call>\n{"name": "handoff_to_planner", "arguments": {}}\n</tool_call>',
    '[{"type": "function", "function": {"name": "handoff_to_planner"}}]',
    'ask_user("Which city?")',
)
TEXTS = st.text(st.sampled_from("ab hand_off(){}[]<>`.\n你"), max_size=200)
WORK: dict[str, Any] = {"coder": [reply("It is 4.")], "reporter": [reply("# 4")]}


async def first_of(it: Scripted, kind: type[Any], **options: Any) -> Any:
    """Return the first event of a kind, and leave the run where it is."""
    events = stream_run(it.team, [HumanMessage("hi")], options=RunOptions(**options))
    async with asyncio.timeout(60), aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"There was no {kind.__name__}.")


@pytest.mark.parametrize("made", CALLS)
@pytest.mark.parametrize("before", ["", "I hand this over: ", LONG + "\n\n", "<think>hm</think>"])
def test_nothing_of_a_call_in_words_is_certain_however_it_is_cut(before, made):
    for end in range(len(before + made) + 1):
        assert before.removeprefix("<think>hm</think>").startswith(certain_text((before + made)[:end]))


@given(TEXTS, st.integers(0, 200))
def test_what_is_certain_of_a_reply_is_its_beginning_and_never_shrinks(text, end):
    assert text.strip().startswith(certain_text(text))
    assert certain_text(text).startswith(certain_text(text[:end]))


def test_a_reply_with_a_long_word_is_read_fast_for_it_is_read_again_with_each_piece():
    began = time.process_time()
    for end in range(5):
        certain_text("-" * 20_000 + "!" * end)
    assert time.process_time() - began < 0.5


def test_a_reply_with_code_in_it_is_certain_after_the_code():
    code = f"{LONG}\n\n```python\nprint({{1: 2}})\n```\nThat is all that there is to it; "
    assert certain_text(code + "it prints a dictionary that has one key and one value.").startswith(code)


@pytest.mark.parametrize("bound", [True, False])
async def test_small_talk_is_shown_before_the_model_has_ended(bound):
    script = {"coordinator": [reply(LONG, hang_after=15)], **({} if bound else {"reject": ["tools"]})}
    async with scripted_team(script) as it:
        shown = await first_of(it, MessageChunk)
    assert LONG.startswith(shown.delta.content)


async def test_a_small_model_greets_word_by_word():
    sort = reply('{"kind":"chat","language":"en"}')
    script = {"other": [sort], "coordinator": [reply("Hello you", hang_after=2)]}
    models = {"profile": "compact"}
    async with scripted_team(script, models=models) as it:
        assert (await first_of(it, MessageChunk)).delta.content == "Hello"


async def test_reasoning_before_a_reply_is_not_shown_and_does_not_hold_it_back():
    script = {"coordinator": [reply(LONG, reasoning="Should I call handoff_to_planner? No.", hang_after=20)]}
    async with scripted_team(script) as it:
        shown = await first_of(it, MessageChunk)
    assert LONG.startswith(shown.delta.content)


@pytest.mark.parametrize(
    "handoff",
    [
        reply(f"{LONG} handoff_to_planner()"),
        {"text": LONG, **call("handoff_to_planner", locale="en")},
        {"chunks": [LONG, ' {"name": "handoff', '_to_planner", "arguments": {}}']},
    ],
)
async def test_a_long_announcement_is_shown_and_the_hand_off_is_not(handoff):
    script = {**WORK, "planner": [reply(json.dumps(plan(step("coder"), step("reporter"))))]}
    async with scripted_team({**script, "coordinator": [handoff]}) as it:
        frames = await it.run()
    before = frames[: [name for name, _ in frames].index("start_of_workflow")]
    assert LONG.startswith(joined_text(before))
    assert frames[-1][1]["messages"][-1]["content"] == "# 4"
    assert status(frames) == "completed"


def test_an_announcement_is_no_answer():
    run = RunView()
    for name in ("coordinator", "planner"):
        for event in _turn(name, "I hand this over."):
            run.apply(event)
    assert run.answer == ""


def _turn(name: str, text: str) -> list[Any]:
    from maniple.events import AgentEnded, AgentStarted, MessageDelta, ModelEnded, ModelStarted

    delta = MessageDelta(content=text)
    return [
        AgentStarted(agent_name=name, agent_id=name),
        ModelStarted(agent_name=name),
        MessageChunk(message_id=name, delta=delta),
        ModelEnded(agent_name=name),
        AgentEnded(agent_name=name, agent_id=name),
    ]


async def test_a_reply_that_broke_off_is_continued_or_replaced_by_a_new_message():
    for again, messages in ((LONG, 1), ("Good day! " + LONG, 2)):
        script = {"coordinator": [reply(LONG, cut_after=14, times=1), reply(again)]}
        plain = {"capabilities": {"unopened_thoughts": False}}  # else the first words are held
        async with scripted_team(script, models=plain) as it:
            frames = await it.run("hi")
        shown: dict[str, str] = {}
        for one in data(frames, "message"):
            shown[one["message_id"]] = shown.get(one["message_id"], "") + one["delta"]["content"]
        assert len(shown) == messages
        assert list(shown.values())[-1].strip() == again


@pytest.mark.parametrize(
    "last",
    [step("reporter"), step("coder", "Again", 'print("}{")'), step("CODER") | {"needs": [1]}, step("coder")],
)
def test_the_text_of_a_draft_is_the_beginning_of_the_plans_text_at_every_moment(last):
    written = plan(step("researcher", "Find {it}", 'Say "}, {" \\\\ \u4f60\U0001f600.') | {"needs": []}, last)
    whole = normalize_plan(Plan.model_validate(written), WORKERS, 9).as_text()
    for text in (json.dumps(written), json.dumps(written, indent=2, ensure_ascii=False)):
        steps = [0]
        for end in range(len(text) + 1):
            draft = read_draft(f"Here: ```json\n{text[:end]}", WORKERS, 9)
            if draft is not None:
                assert whole.startswith(draft.text)
                steps.append(len(draft.plan.steps))
        assert steps == sorted(steps)
        assert set(steps) == {0, 1, 2}


def test_a_draft_ends_before_a_step_that_no_member_can_do():
    text = json.dumps(plan(step("coder"), step("chef"), step("coder")))
    draft = read_draft(text, WORKERS, 9)
    assert draft is not None
    assert [one.agent_name for one in draft.plan.steps] == ["coder"]


async def test_each_step_is_shown_when_it_is_closed_and_no_draft_is_a_plan():
    steps = [step("researcher"), step("coder"), step("reporter")]
    planner = reply(json.dumps(plan(*steps)))
    async with scripted_team(
        {
            **WORK,
            "researcher": [reply("x")],
            "coordinator": [call("handoff_to_planner")],
            "planner": [planner],
        }
    ) as it:
        frames = await it.run()
    shown = drafts(frames)
    # Steps that arrive together are shown together.
    counts = [len(one["steps"]) for one in shown]
    assert (counts, counts[-1]) == (sorted(set(counts)), 3)
    assert {one["status"] for draft in shown for one in draft["steps"]} == {"not_started"}
    assert "draft" not in data(frames, "plan")[0]
    assert [name for name, _ in frames].index("plan") < [name for name, _ in frames].index("end_of_llm", 6)


async def test_a_draft_of_the_forced_tool_call_is_read_from_its_arguments():
    text = json.dumps(plan(step("coder"), step("reporter")))
    planner = {"tool_calls": [{"name": "Plan", "arguments": text}]}
    script = {**WORK, "coordinator": [call("handoff_to_planner")], "planner": [planner]}
    models = {"capabilities": {"grammar": False, "json_schema": False, "tools": True}}
    async with scripted_team(script, models=models) as it:
        frames = await it.run()
    counts = [len(one["steps"]) for one in drafts(frames)]
    assert (counts, counts[-1]) == (sorted(set(counts)), 2)


async def test_a_second_plan_is_a_new_message_in_a_model_call_of_its_own():
    bad = reply(json.dumps(plan(step("coder", "Bad"), step("chef"))))
    good = reply(json.dumps(plan(step("coder", "Good"), step("reporter"))))
    script = {**WORK, "coordinator": [call("handoff_to_planner")], "planner": [bad, good]}
    async with scripted_team(script) as it:
        frames = await it.run()
    names = [name for name, _ in frames]
    planner = frames[names.index("start_of_workflow") : names.index("end_of_agent", names.index("plan"))]
    shown: dict[str, str] = {}
    for one in data(planner, "message"):
        shown[one["message_id"]] = shown.get(one["message_id"], "") + one["delta"]["content"]
    first, second = shown.values()
    assert "Bad" in first
    assert json.loads(second) == json.loads(frames[-1][1]["messages"][1]["content"])
    assert len(data(planner, "start_of_llm")) == 2
    titles = [draft["steps"][0]["title"] for draft in drafts(frames)]
    assert list(dict.fromkeys(titles)) == ["Bad", "Good"]


async def test_a_plan_in_which_nothing_is_certain_is_shown_whole_at_its_end():
    written = {"title": "Sum", "steps": [step("coder")], "thought": "late"}
    script = {**WORK, "coordinator": [call("handoff_to_planner")], "planner": [reply(json.dumps(written))]}
    async with scripted_team(script) as it:
        frames = await it.run()
    assert json.loads(data(frames, "message")[0]["delta"]["content"])["thought"] == "late"
    assert [len(one["steps"]) for one in drafts(frames)] == [1]


async def test_the_first_step_is_shown_before_the_model_has_ended():
    text = json.dumps(plan(step("coder"), step("reporter")))
    end = text.index("}") + 1
    planner = {"chunks": [text[:end], text[end:]], "hang_after": 1}
    async with scripted_team({"coordinator": [call("handoff_to_planner")], "planner": [planner]}) as it:
        shown = await first_of(it, PlanChanged)
    assert shown.draft
    assert [one.agent_name for one in shown.steps] == ["coder"]
