"""The stream of a real server process, frame by frame (`docs/wire.md`, "Frames" and "Order")."""

import asyncio
import json
import re
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import Frame, frames_of, stream
from tests.team import plan, step

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}
_TOOK = re.compile(r"\\n\[took [\d.]+ s\]")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def golden(frames: list[Frame], *, extensions: bool = False) -> list[str]:
    """Return the frames with the run's own identifiers replaced, as the old client sees them.

    Pieces of one message that follow each other are one: how a text is cut is no part of the contract.
    """
    ours = {"run", "plan", "usage", "run_status"}
    kept = _joined([(name, data) for name, data in frames if extensions or name not in ours])
    # On a busy machine code takes so long that its result says for how long.
    lines = [_TOOK.sub("", f"{name} {json.dumps(data, ensure_ascii=False)}") for name, data in kept]
    seen: dict[str, str] = {}
    return [_UUID.sub(lambda m: seen.setdefault(m.group(), f"id{len(seen) + 1}"), line) for line in lines]


def _joined(frames: list[Frame]) -> list[Frame]:
    joined: list[Frame] = []
    for name, data in frames:
        last_name, last = joined[-1] if joined else ("", {})
        if name == last_name == "message" and data["message_id"] == last["message_id"]:
            content = last["delta"]["content"] + data["delta"]["content"]
            joined[-1] = name, {**data, "delta": {"content": content}}
        else:
            joined.append((name, data))
    return joined


async def ask(
    client: httpx.AsyncClient, model: OpenAIServer, script: dict[str, Any], **body: Any
) -> list[Frame]:
    model.reset({**SIMPLE, **script})
    frames = await frames_of(client, {**QUESTION, **body})
    Client().read(frames)
    return frames


async def test_a_workflow(client, model):
    frames = await ask(client, model, {"reporter": [{"chunks": ["# 报告", "\n4"]}]})
    plan_text = json.dumps(frames[-1][1]["messages"][1]["content"])
    assert golden(frames) == [
        'start_of_agent {"agent_name": "coordinator", "agent_id": "id1_coordinator_1"}',
        'start_of_llm {"agent_name": "coordinator"}',
        'end_of_llm {"agent_name": "coordinator"}',
        'end_of_agent {"agent_name": "coordinator", "agent_id": "id1_coordinator_1"}',
        'start_of_workflow {"workflow_id": "id1", "input": [{"role": "user", "content": "1+3=?"}]}',
        'start_of_agent {"agent_name": "planner", "agent_id": "id1_planner_2"}',
        'start_of_llm {"agent_name": "planner"}',
        f'message {{"message_id": "lc_run--id2", "delta": {{"content": {plan_text}}}}}',
        'end_of_llm {"agent_name": "planner"}',
        'end_of_agent {"agent_name": "planner", "agent_id": "id1_planner_2"}',
        'start_of_agent {"agent_name": "coder", "agent_id": "id1_coder_4"}',
        'start_of_llm {"agent_name": "coder"}',
        'end_of_llm {"agent_name": "coder"}',
        'tool_call {"tool_call_id": "id1_coder_python_repl_tool_id3", "tool_name": "python_repl_tool", '
        '"tool_input": {"code": "print(1+3)"}}',
        'tool_call_result {"tool_call_id": "id1_coder_python_repl_tool_id3", '
        '"tool_name": "python_repl_tool", "tool_result": "4"}',
        'start_of_llm {"agent_name": "coder"}',
        'message {"message_id": "lc_run--id4", "delta": {"content": "1 + 3 = 4"}}',
        'end_of_llm {"agent_name": "coder"}',
        'end_of_agent {"agent_name": "coder", "agent_id": "id1_coder_4"}',
        'start_of_agent {"agent_name": "reporter", "agent_id": "id1_reporter_6"}',
        'start_of_llm {"agent_name": "reporter"}',
        'message {"message_id": "lc_run--id5", "delta": {"content": "# 报告\\n4"}}',
        'end_of_llm {"agent_name": "reporter"}',
        'end_of_agent {"agent_name": "reporter", "agent_id": "id1_reporter_6"}',
        'end_of_workflow {"workflow_id": "id1", "messages": [{"role": "user", "content": "1+3=?"}, '
        f'{{"role": "user", "content": {plan_text}}}, {{"role": "user", "content": "1 + 3 = 4"}}, '
        '{"role": "user", "content": "# 报告\\n4"}]}',
        'final_session_state {"messages": [{"role": "user", "content": "1+3=?"}, '
        f'{{"role": "user", "content": {plan_text}}}, {{"role": "user", "content": "1 + 3 = 4"}}, '
        '{"role": "user", "content": "# 报告\\n4"}]}',
    ]


@pytest.mark.parametrize("chunks", [["Hello!"], ["He", "llo", " you", " all"]])
async def test_small_talk(client, model, chunks):
    frames = await ask(client, model, {"coordinator": [{"chunks": chunks}]})
    assert golden(frames, extensions=True) == [
        'run {"run_id": "id1", "thread_id": "id1"}',
        'start_of_agent {"agent_name": "coordinator", "agent_id": "id1_coordinator_1"}',
        'start_of_llm {"agent_name": "coordinator"}',
        *[line for line in golden(frames, extensions=True) if line.startswith("usage")],
        f'message {{"message_id": "lc_run--id2", "delta": {{"content": "{"".join(chunks)}"}}}}',
        'end_of_llm {"agent_name": "coordinator"}',
        'end_of_agent {"agent_name": "coordinator", "agent_id": "id1_coordinator_1"}',
        'run_status {"status": "completed"}',
        'final_session_state {"messages": [{"role": "user", "content": "1+3=?"}, '
        f'{{"role": "assistant", "content": "{"".join(chunks)}"}}]}}',
    ]


async def test_small_talk_that_streams_is_the_same_stream_as_in_one_piece(client, model):
    chunks = ["Hello! I am", *(" very" for _ in range(20)), " well."]
    streamed: list[Frame] = []
    model.reset({**SIMPLE, "coordinator": [{"chunks": chunks, "hang_after": 15}]})
    async with aclosing(stream(client, QUESTION)) as frames:
        async for _, frame in frames:
            streamed.append(frame)
            if frame[0] == "message" and [name for name, _ in streamed].count("message") == 1:
                await asyncio.to_thread(model.release)
    whole = await ask(client, model, {"coordinator": [{"chunks": ["".join(chunks)]}]})
    assert golden(streamed) == golden(whole)
    assert [name for name, _ in streamed].count("message") > 1


async def test_a_plan_appears_step_by_step_before_the_model_has_ended(client, model):
    first, rest = json.dumps(plan(step("coder", "One"), step("reporter"))).split(", {", 1)
    model.reset({**SIMPLE, "planner": [{"chunks": [first, ", {" + rest], "hang_after": 1}]})
    seen: list[Frame] = []
    async with aclosing(stream(client, QUESTION)) as frames:
        async for _, frame in frames:
            seen.append(frame)
            if frame[0] == "plan":
                break
    assert [one["title"] for one in seen[-1][1]["steps"]] == ["One"]
    assert seen[-1][1]["draft"] is True
    shown = seen[-2]
    assert shown[0] == "message"
    assert shown[1]["delta"]["content"].startswith('{"thought":"t","title":"The plan","steps":[{"agent_name"')


@pytest.mark.parametrize("chunks", [["h", "andoff_to_", "planner", "()"], ["handoff_to_planner()"]])
async def test_a_hand_off_in_odd_chunks_is_the_same_stream_as_by_tool_call(client, model, chunks):
    by_tool = golden(await ask(client, model, {}))
    by_text = golden(await ask(client, model, {"coordinator": [{"chunks": chunks}]}))
    assert by_text == by_tool


async def test_a_hand_off_with_a_step_is_the_same_stream_as_the_planners_plan_of_it(client, model):
    only = step("coder", "The sum")
    written = json.dumps({"thought": "", "title": "The sum", "steps": [only]})
    by_planner = golden(await ask(client, model, {"planner": [{"chunks": [written]}]}))
    handed = [call("handoff_to_planner", locale="en", step=only)]
    by_coordinator = golden(await ask(client, model, {"coordinator": handed}))
    # The plan's message is no answer of a model, so that its id has not the prefix of one.
    first = by_planner.index('start_of_llm {"agent_name": "planner"}') + 1
    by_planner[first] = by_planner[first].replace('"lc_run--', '"')
    assert by_coordinator == by_planner


async def test_a_bad_plan_is_requested_again_and_only_the_good_one_is_shown(client, model):
    good = json.dumps(plan(step("coder"), step("reporter")))
    frames = await ask(client, model, {"planner": [reply("not json at all"), reply(good)]})
    shown = "".join(line for line in golden(frames) if '"delta"' in line)
    assert "not json" not in shown
    assert frames[-1][1]["messages"][1]["content"].startswith('{"thought":"t","title":"The plan"')


async def test_after_two_bad_plans_one_member_works_and_the_client_gets_a_plan_it_can_parse(client, model):
    frames = await ask(client, model, {"planner": [reply("not json at all")], "coder": [reply("4")]})
    assert dict(frames)["run_status"] == {"status": "completed"}
    plans = [data for name, data in frames if name == "plan" and not data.get("draft")]
    assert [one["agent_name"] for one in plans[0]["steps"]] == ["coder", "reporter"]


@pytest.mark.parametrize("role", ["coordinator", "planner"])
async def test_a_model_error_before_there_is_a_plan(client, model, role):
    frames = await ask(client, model, {role: [{"status": 500}]})
    error = dict(frames)["error"]
    assert (error["code"], error["agent_name"], error["retryable"]) == ("model_overloaded", role, True)
    assert [name for name, _ in frames[-4:]] == [
        "error",
        "run_status",
        "end_of_workflow",
        "final_session_state",
    ]
    assert frames[-1][1]["messages"][0] == {"role": "user", "content": "1+3=?"}


async def test_a_model_error_of_the_reporter_fails_the_run_and_leaves_its_results(client, model):
    frames = await ask(client, model, {"reporter": [{"status": 500}]})
    ended, error = dict(frames)["run_status"], dict(frames)["error"]
    assert (error["code"], error["agent_name"], error["retryable"]) == ("model_overloaded", "reporter", True)
    assert (ended["status"], len(ended["gaps"])) == ("failed", 1)


@pytest.mark.parametrize("role", ["coder"])
async def test_a_model_error_of_a_member_leaves_a_report_and_a_gap(client, model, role):
    frames = await ask(client, model, {role: [{"status": 500}]})
    ended = dict(frames)["run_status"]
    assert "error" not in dict(frames)
    assert (ended["status"], len(ended["gaps"])) == ("completed", 1)


async def test_a_tool_that_fails_still_gives_a_result(client, model):
    researcher = [call("crawl_tool", url="http://127.0.0.1:1/"), reply("It cannot be read.")]
    planner = [reply(json.dumps(plan(step("researcher"), step("reporter"))))]
    frames = await ask(client, model, {"planner": planner, "researcher": researcher})
    result = dict(frames)["tool_call_result"]
    assert result["tool_name"] == "crawl_tool"
    assert "127.0.0.1" in result["tool_result"]
    assert dict(frames)["run_status"]["status"] == "completed"


async def leave_when_coder_is_asked(client: httpx.AsyncClient, model: OpenAIServer, **body: Any) -> None:
    async with aclosing(stream(client, {**QUESTION, **body})) as frames:
        async for _, (name, data) in frames:
            if name == "start_of_llm" and data["agent_name"] == "coder":
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1, 100)
                return


async def test_a_client_that_leaves_ends_the_model_call(client, model):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    await leave_when_coder_is_asked(client, model)
    await asyncio.to_thread(model.wait_for, lambda stats: stats["aborted"] == 1, 2)


async def test_a_client_that_leaves_may_let_the_run_go_on(client, model):
    model.reset({**SIMPLE, "coder": [reply("one two three", delay_seconds=0.2)]})
    await leave_when_coder_is_asked(client, model, on_disconnect="continue")
    await asyncio.to_thread(
        model.wait_for, lambda s: s["by_role"].get("reporter") == 1 and s["active"] == 0, 100
    )
    assert model.stats["aborted"] == 0


async def test_a_plan_review_pauses_and_goes_on(client, model):
    model.reset(SIMPLE)
    paused = await frames_of(client, {**QUESTION, "thread_id": "review", "auto_accepted_plan": False})
    Client().read(paused)
    assert dict(paused)["interrupt"]["kind"] == "plan_review"
    assert dict(paused)["run_status"]["status"] == "interrupted"
    accept = {"messages": [{"role": "user", "content": "accept"}], "thread_id": "review"}
    frames = await frames_of(client, accept)
    Client().read(frames)
    assert [d["agent_name"] for n, d in frames if n == "start_of_agent"] == ["coder", "reporter"]


async def test_two_runs_at_once_share_nothing(client, model):
    model.reset({**SIMPLE, "reporter": [reply("for {run}")]})

    async def one(name: str) -> list[Frame]:
        body = {"messages": [{"role": "user", "content": f"1+3=? #run={name}"}]}
        return await frames_of(client, body)

    first, second = await asyncio.gather(one("alpha"), one("beta"))
    assert first[-1][1]["messages"][-1]["content"] == "for alpha"
    assert second[-1][1]["messages"][-1]["content"] == "for beta"


async def test_frames_are_numbered_from_one(client, model):
    model.reset(SIMPLE)
    numbers = [number async for number, _ in stream(client, QUESTION)]
    assert numbers == list(range(1, len(numbers) + 1))
