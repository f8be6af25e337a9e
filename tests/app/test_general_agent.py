"""One agent alone: no coordinator, no plan of others, no report."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from maniple.agents.task import MISSING_IN_IT
from maniple.app import Runtime, open_runtime
from maniple.config import Settings
from maniple.graph import RunOptions, members_of
from maniple.runs.turn import stream_run
from tests.api.in_process import QUESTION, open_service, settings_of
from tests.cli.processes import MAIN, environment, run, start
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import agents, checked, data, status

pytestmark = pytest.mark.anyio
TEAM = {"members": ["coder", "manus"]}
SCRIPT = {"manus": [call("write_file", path="a.txt", content="4"), reply("It is 4.")]}
ALONE = RunOptions(agent="manus")


@asynccontextmanager
async def general(
    script: dict[str, Any], folder: Any, team: dict[str, Any] = TEAM, **model: Any
) -> AsyncIterator[tuple[Runtime, Any]]:
    with serving(script) as server:
        basic = {"base_url": server.base_url, "model": "gpt-4o", "api_key": "x", **model}
        settings: Settings = settings_of(server.base_url, folder, team=team, models={"basic": basic})
        async with open_runtime(settings, checkpointer=InMemorySaver()) as runtime:
            yield runtime, server


async def _read(events: AsyncIterator[Any]) -> list[tuple[str, dict[str, Any]]]:
    return checked([event async for event in events])


async def ask(runtime: Runtime, text: str) -> list[tuple[str, dict[str, Any]]]:
    return await _read(stream_run(runtime.graph, [HumanMessage(text)], thread_id="t", options=ALONE))


async def test_the_general_agent_answers_alone_with_every_tool_that_is_there(tmp_path):
    async with general(SCRIPT, tmp_path) as (runtime, server):
        frames = await ask(runtime, "1+3=?")
    assert (agents(frames), status(frames)) == (["manus"], "completed")
    assert [one["tool_name"] for one in data(frames, "tool_call")] == ["write_file"]
    assert data(frames, "final_session_state")[0]["messages"] == [
        {"role": "user", "content": "1+3=?"},
        {"role": "assistant", "content": "It is 4."},
    ]
    offered = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert {"write_file", "str_replace_editor", "crawl_tool", "ask_human", "terminate"} <= offered
    assert "search_items" not in offered
    assert {name for name in offered if "file" in name} == {
        *("write_file", "read_file", "list_files", "search_files"),
        *("file_operations", "undo_file_operations"),
    }, "each action on files is offered once"


async def test_the_general_agent_searches_a_thread_that_has_items(tmp_path):
    found = [call("search_items", query="4"), reply("It is in a.txt.")]
    async with general({"manus": [*SCRIPT["manus"], *found]}, tmp_path) as (runtime, server):
        await ask(runtime, "1+3=?")
        frames = await ask(runtime, "Where is it?")
    offered = [{tool["function"]["name"] for tool in one["tools"]} for one in server.requests]
    assert ["search_items" in names for names in offered] == [False, False, True, True]
    assert "- a.txt (file), line 1: **4**" in data(frames, "tool_call_result")[-1]["tool_result"]


PART = call("terminate", status="partial", result="April: 3 [1].", missing="the rate of May")


async def test_an_answer_in_part_is_shown_and_what_is_missing_is_a_gap(tmp_path):
    async with general({"manus": [PART]}, tmp_path) as (runtime, server):
        frames = await ask(runtime, "The rates?")
        assert len(server.requests) == 1, "nobody else is asked"
    text = data(frames, "final_session_state")[0]["messages"][-1]["content"]
    assert "April: 3" in text and f"{MISSING_IN_IT} the rate of May" in text
    [gap] = data(frames, "run_status")[-1]["gaps"]
    assert gap["reason"] == f"{MISSING_IN_IT} the rate of May."


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ([call("terminate", status="failure", result="no site")], "Another try failed: No site."),
        ([call("terminate", status="success", result="May: 4.")], None),
    ],
)
async def test_an_answer_in_part_outlives_a_retry(tmp_path, second, reason):
    thread = {"configurable": {"thread_id": "t"}}
    async with general({"manus": [PART]}, tmp_path) as (runtime, server):
        await ask(runtime, "The rates?")
        server.reset({"manus": second})
        again = await runtime.graph.ainvoke(None, thread, context=ALONE)
        [shown] = [one for one in server.requests if "April: 3" in str(one["messages"])]
        assert "the rate of May" in str(shown["messages"])
    last = again["messages"][-1]
    assert "April: 3" in last.text or reason is None
    assert [gap["reason"].endswith(reason) for gap in last.response_metadata["gaps"]] == [True] * bool(reason)


async def test_terminate_ends_the_work_with_its_answer(tmp_path):
    script = {"manus": [call("terminate", answer="It is 4."), reply("It is 4.")]}
    async with general(script, tmp_path) as (runtime, _):
        frames = await ask(runtime, "1+3=?")
    assert data(frames, "final_session_state")[0]["messages"][-1]["content"] == "It is 4."
    assert status(frames) == "completed"


async def test_the_general_agent_remembers_the_conversation(tmp_path):
    async with general({"manus": [reply("It is 4.")]}, tmp_path) as (runtime, server):
        await ask(runtime, "1+3=?")
        await ask(runtime, "And one more?")
    shown = [(one["role"], one["content"]) for one in server.requests[-1]["messages"][1:]]
    assert shown == [("user", "1+3=?"), ("assistant", "It is 4."), ("user", "And one more?")]


async def test_a_conversation_may_have_more_turns_than_a_step_has_answers(tmp_path):
    team = {**TEAM, "max_model_calls_per_step": 2}
    async with general({"manus": [reply("It is 4.")]}, tmp_path, team) as (runtime, server):
        for _ in range(4):
            frames = await ask(runtime, "1+3=?")
    assert (status(frames), len(server.requests)) == ("completed", 4)


async def test_what_was_found_before_the_limit_is_of_this_step_alone(tmp_path):
    team = {**TEAM, "max_model_calls_per_step": 2}
    script = {"manus": [reply("It is 4."), *[call("list_files")] * 3]}
    async with general(script, tmp_path, team) as (runtime, _):
        await ask(runtime, "1+3=?")
        frames = await ask(runtime, "Which files are there?")
    answer = data(frames, "final_session_state")[0]["messages"][-1]["content"]
    assert "limit of 2 model calls" in answer
    assert "It is 4." not in answer


async def test_the_question_stays_when_the_work_on_it_is_shortened(tmp_path):
    long = " ".join(f"word{number}" for number in range(900))
    turns = [call("write_file", path=f"{number}.txt", content=long) for number in range(8)]
    script = {"manus": [reply("Hello."), *turns, reply("Done.")], "other": [reply("Files were written.")]}
    async with general(script, tmp_path, context_tokens=16_000) as (runtime, server):
        await ask(runtime, "Good morning!")
        await ask(runtime, "Write eight files.")
    shortened = [one for one in server.requests if "shorten the record" in str(one["messages"][0])]
    others = [one for one in server.requests[1:] if one not in shortened]
    assert shortened
    assert all({"role": "user", "content": "Write eight files."} in one["messages"] for one in others)


async def test_of_a_long_conversation_the_newest_part_is_reported(tmp_path):
    async with general({"manus": [reply("Yes.")]}, tmp_path, context_tokens=16_000) as (runtime, server):
        for number in range(12):
            await ask(runtime, f"{number}: " + "How are you, and how is everybody at home? " * 60)
        await ask(runtime, "Good night!")
    told = server.requests[-1]["messages"]
    assert told[-1] == {"role": "user", "content": "Good night!"}
    assert sum(len(str(one["content"])) for one in told[1:]) < 30_000


async def test_what_the_general_agent_cannot_do_ends_the_run_with_its_reasons(tmp_path):
    async with general({"manus": [reply("STEP FAILED: no such file")]}, tmp_path) as (runtime, server):
        frames = await ask(runtime, "Read it")
    assert len(server.requests) == 1
    assert data(frames, "plan")[-1]["steps"][0]["status"] == "failed"
    assert data(frames, "final_session_state")[0]["messages"][-1]["content"] == "no such file"


async def test_what_the_general_agent_only_says_it_did_is_asked_about_once_and_is_a_gap(tmp_path):
    ended = call("terminate", status="success", result="I saved it as plan.docx, and all tests pass.")
    async with general({"manus": [ended]}, tmp_path) as (runtime, server):
        frames = await ask(runtime, "Write plan.docx and test it")
    assert len(server.requests) == 2
    assert data(frames, "plan")[-1]["steps"][0]["status"] == "completed"
    (gap,) = data(frames, "run_status")[-1]["gaps"]
    assert "plan.docx" in gap["reason"]


async def test_the_service_gives_a_run_to_an_agent_that_its_settings_name(tmp_path):
    with serving(SCRIPT) as server:
        async with open_service(server.base_url, tmp_path, team=TEAM) as it:
            frames = await it.events_of((await it.run(agent="manus"))["run_id"])
            assert (await it.get("/api/team_members"))["team_members"].keys() >= {"manus", "coder"}
            refused = await it.client.post("/api/chat/stream", json={**QUESTION, "agent": "coder"})
            schemas = (await it.get("/openapi.json"))["components"]["schemas"]
    assert agents(frames) == ["manus"]
    assert (refused.status_code, "known: manus" in refused.text) == (422, True)
    assert schemas["RunBody"]["properties"]["agent"]["anyOf"][0]["enum"] == ["", "manus"]


async def test_without_the_setting_there_is_no_agent_that_works_alone(tmp_path):
    with serving(SCRIPT) as server:
        async with open_service(server.base_url, tmp_path) as it:
            refused = await it.client.post("/api/chat/stream", json={**QUESTION, "agent": "manus"})
            assert "manus" not in (await it.get("/api/team_members"))["team_members"]
    assert (refused.status_code, "team.members" in refused.text) == (422, True)


@pytest.mark.slow
async def test_a_killed_run_of_the_general_agent_goes_on_without_its_option(tmp_path):
    with serving({"manus": [*SCRIPT["manus"][:1], {"hang": True}]}) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__BACKEND="off")
        process = await start(MAIN, "--agent", "manus", "1+3=?", folder=tmp_path, env=env)
        try:
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("manus") == 2)
        finally:
            process.kill()
            await process.communicate()
        server.reset({"manus": [reply("It is 4.")]})
        code, output, notes = await run("--continue", folder=tmp_path, env=env)
        assert (code, output.strip()) == (0, "It is 4."), notes
        assert server.stats["by_role"] == {"manus": 1}, "it goes on where it was"


async def test_the_service_goes_on_with_a_run_that_its_settings_would_not_give_to_anybody_any_more(tmp_path):
    with serving({"manus": [call("ask_human", question="How many?"), reply("It is 4.")]}) as server:
        async with open_service(server.base_url, tmp_path, team=TEAM) as it:
            run_id = (await it.run(agent="manus"))["run_id"]
            asked = await it.events_of(run_id)
            assert status(asked) == "interrupted"
        async with open_service(server.base_url, tmp_path) as it:
            answered = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "4"})
            assert answered.status_code == 202, answered.text
            frames = await it.events_of(run_id, after=len(asked))
            refused = await it.client.post("/api/chat/stream", json={**QUESTION, "agent": "manus"})
            assert "manus" not in (await it.get("/api/team_members"))["team_members"]
    assert data(frames, "run_status")[-1] == {"status": "completed"}
    assert frames[-1][1]["messages"][-1] == {"role": "assistant", "content": "It is 4."}
    assert refused.status_code == 422


async def test_an_on_call_member_is_not_offered_to_the_planner(tmp_path):
    script = {**SIMPLE, "manus": [reply("It is 4.")]}
    with serving(script) as server:
        async with open_runtime(settings_of(server.base_url, tmp_path), on_call=("manus",)) as runtime:
            assert "manus" not in members_of(runtime.graph)
            assert runtime.alone == []
            await _read(stream_run(runtime.graph, [HumanMessage("1+3=?")], thread_id="t"))
            frames = await _read(stream_run(runtime.graph, [HumanMessage("1+3=?")], options=ALONE))
        shown = json.dumps(server.requests[:-1])
    assert agents(frames) == ["manus"]
    assert "manus" not in shown


async def test_its_only_step_is_the_answer_and_cannot_be_skipped_or_reassigned(tmp_path):
    with serving({"manus": [{"hang": True}, reply("It is 4.")]}) as server:
        async with open_service(server.base_url, tmp_path, team=TEAM) as it:
            run_id = (await it.run(agent="manus"))["run_id"]
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("manus") == 1)
            path = f"/api/runs/{run_id}/plan"
            skipped = await it.client.post(path, json={"action": "skip", "step_id": 1})
            edit = {"action": "edit", "step_id": 1, "agent_name": "coder"}
            edited = await it.client.post(path, json=edit)
            await it.client.post(f"/api/runs/{run_id}/cancel")
    assert (skipped.status_code, "Cancel the run instead." in skipped.text) == (422, True)
    assert (edited.status_code, "it has manus." in edited.text) == (422, True)


async def test_the_terminal_prints_what_the_general_agent_had_found_when_it_gave_up(tmp_path):
    script = {
        "manus": [call("write_file", path="a.txt", content="4"), *[call("read_file", path="a.txt")] * 9]
    }
    with serving(script) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__BACKEND="off")
        code, output, notes = await run("--agent", "manus", "Read a.txt", folder=tmp_path, env=env)
    assert code == 1, notes
    assert output.startswith("the agent was stuck")
    assert "```\n4\n```" in output
    assert "<data" not in output


async def test_the_terminal_prints_what_the_general_agent_ends_with(tmp_path):
    script = {"manus": [call("terminate", answer="It is 4.")]}
    with serving(script) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__BACKEND="off")
        code, output, notes = await run("--agent", "manus", "1+3=?", folder=tmp_path, env=env)
    assert (code, output.strip()) == (0, "It is 4."), notes


async def test_the_terminal_prints_what_the_general_agent_answers(tmp_path):
    with serving({"manus": [reply("It is 4.")]}) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__BACKEND="off")
        code, output, notes = await run("--agent", "manus", "1+3=?", folder=tmp_path, env=env)
    assert (code, output.strip()) == (0, "It is 4."), notes
    assert len(server.requests) == 1
