"""The embedded team behind `ag-ui-langgraph`, which serves a graph of LangGraph as an agent of AG-UI."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent

from maniple.graph import TeamRules
from tests.openai_server import SIMPLE, call, reply
from tests.team import Scripted, scripted_team

pytestmark = [
    pytest.mark.anyio,
    # Of LangGraph, about how the adapter reads the options of a graph.
    pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10"),
]
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}


class Conversation:
    """A client's conversation with the agent: each input has all messages so far."""

    def __init__(self, it: Scripted, **options: Any) -> None:
        graph: Any = it.team
        self.agent: Any = LangGraphAgent(name="team", graph=graph, config={"configurable": options})
        self.thread_id = str(uuid4())
        self.messages: list[Any] = []

    async def send(self, text: str = "", **props: Any) -> list[Any]:
        """Send a message of the user, or only `forwarded_props`; return the events of the run."""
        if text:
            self.messages.append(UserMessage(id=str(uuid4()), role="user", content=text))
        given = RunAgentInput(
            thread_id=self.thread_id,
            run_id=str(uuid4()),
            state={},
            messages=self.messages,
            tools=[],
            context=[],
            forwarded_props=props,
        )
        events = [event async for event in self.agent.clone().run(given)]
        for snapshot in [one for one in events if one.type == "MESSAGES_SNAPSHOT"][-1:]:
            self.messages = [*snapshot.messages]
        return events


def names(events: list[Any]) -> list[str]:
    return [str(one.type.value) for one in events]


async def test_a_task_streams_and_its_answer_is_the_last_message_of_the_snapshot():
    async with scripted_team(SIMPLE) as it:
        client = Conversation(it)
        events = await client.send("1+3=?")
        assert (names(events)[0], names(events)[-1]) == ("RUN_STARTED", "RUN_FINISHED")
        assert "TEXT_MESSAGE_CONTENT" in names(events)
        assert client.messages[0].content == "1+3=?"
        assert "The answer is **4**" in client.messages[-1].content


async def test_a_conversation_goes_on_with_each_message_once():
    async with scripted_team({"coordinator": [reply("Hello!"), reply("Fine.")]}) as it:
        client = Conversation(it)
        await client.send("Hi")
        await client.send("How are you?")
        assert [one.content for one in client.messages] == ["Hi", "Hello!", "How are you?", "Fine."]


async def test_a_question_is_an_interrupt_and_its_answer_resumes_the_run():
    async with scripted_team(ASKS, rules=TeamRules(max_clarifications=1)) as it:
        client = Conversation(it)
        events = await client.send("A sum?")
        [asked] = [one for one in events if one.type == "CUSTOM" and one.name == "on_interrupt"]
        assert "Which numbers?" in str(asked.value)
        await client.send(command={"resume": "1 and 3"})
        assert "The answer is **4**" in client.messages[-1].content


def asked_by(events: list[Any]) -> str:
    """Return what the run waits for."""
    [asked] = [one for one in events if one.type == "CUSTOM" and one.name == "on_interrupt"]
    return str(asked.value)


async def test_a_plan_is_reviewed():
    async with scripted_team(SIMPLE) as it:
        client = Conversation(it, auto_accepted_plan=False)
        assert "Compute" in asked_by(await client.send("1+3=?"))
        assert not it.prompts("coder")
        await client.send(command={"resume": "accept"})
        assert "The answer is **4**" in client.messages[-1].content


async def test_a_tool_call_is_approved_with_other_arguments():
    async with scripted_team(SIMPLE, rules=TeamRules(approval=frozenset({"python_repl_tool"}))) as it:
        client = Conversation(it)
        assert "print(1+3)" in asked_by(await client.send("1+3=?"))
        edit = {"type": "edit", "args": {"code": "print('edited')"}}
        await client.send(command={"resume": edit})
        assert "The answer is **4**" in client.messages[-1].content
        assert "edited" in json.dumps(it.server.requests)


async def test_a_run_that_fails_is_an_error_event_with_the_reason():
    async with scripted_team({"coordinator": [{"status": 400, "error": "no such thing"}]}) as it:
        client = Conversation(it)
        events = await client.send("1+3=?")
        assert events[-1].type == "RUN_ERROR"
        assert "no such thing" in events[-1].message


async def test_a_front_end_that_goes_away_leaves_a_run_that_goes_on_with_what_it_has():
    """The run is that of the request: it ends with it, and the next request does the rest of it."""
    script = {**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]]}
    async with scripted_team(script) as it:
        client = Conversation(it)
        sending = asyncio.ensure_future(client.send("1+3=?"))
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["active"] == 0)
        done = await it.team.ainvoke(None, {"configurable": {"thread_id": client.thread_id}})
        assert "The answer is **4**" in done["messages"][-1].text
        assert it.server.stats["by_role"]["planner"] == 1
        reloaded = Conversation(it)
        reloaded.thread_id = client.thread_id
        it.server.reset({"coordinator": [reply("Fine.")]})
        await reloaded.send("How are you?")
        assert reloaded.messages[0].content == "1+3=?"
        assert reloaded.messages[-1].content == "Fine."
