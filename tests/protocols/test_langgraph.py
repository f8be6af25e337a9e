"""The LangGraph API with LangGraph's own clients: its SDK, and `RemoteGraph` as a node of another graph."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from maniple.store import open_store
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols.parent_graph import put_into_graph
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello! How are you?")]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
APPROVED = {"decisions": [{"type": "approve"}]}
EDITED = {"name": "bash_tool", "args": {"cmd": "echo edited"}}
MODES = ["values", "updates", "messages-tuple", "custom", "events"]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def asking(text: Any = "1+3=?", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text, **more}]}


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server.url, api_key=None, timeout=100) as it:
        yield it


async def new_thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def streamed(client: LangGraphClient, thread: str | None, **options: Any) -> list[Any]:
    given: Any = {"input": asking(), "stream_mode": MODES, **options}
    return [part async for part in client.runs.stream(thread, "maniple", **given)]


def data(parts: list[Any], name: str) -> list[Any]:
    return [part.data for part in parts if part.event == name]


def answer_of(values: Any) -> str:
    return values["messages"][-1]["content"]


async def test_the_assistants_are_the_team_and_the_agents_that_answer_alone(client: LangGraphClient):
    [team, *_] = await client.assistants.search()
    assert team["graph_id"] == "maniple"
    assert (await client.assistants.get("maniple"))["assistant_id"] == team["assistant_id"]
    assert "depth" in (await client.assistants.get_schemas("maniple"))["context_schema"]["properties"]
    nodes = {one["id"] for one in (await client.assistants.get_graph(team["assistant_id"]))["nodes"]}
    assert {"planner", "reporter"} <= nodes
    with pytest.raises(APIStatusError) as refused:
        await client.assistants.get("agent")
    assert refused.value.response.status_code == 404


async def test_the_service_says_that_it_answers_and_which_langgraph_it_has(server: ServerProcess):
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/ok")).json() == {"ok": True}
        assert (await http.get("/info")).json()["langgraph_py_version"]


async def test_a_task_is_streamed_in_all_modes_and_its_parts_agree(client: LangGraphClient):
    thread = await new_thread(client)
    parts = await streamed(client, thread)
    assert (parts[0].event, parts[-1].event) == ("metadata", "end")
    values = data(parts, "values")
    assert "4" in answer_of(values[-1])
    assert [step["status"] for step in values[-1]["plan"]["steps"]] == ["completed", "completed"]
    chunks = data(parts, "messages")
    assert {chunk["id"] for chunk, _ in chunks} == {values[-1]["messages"][-1]["id"]}
    assert "".join(chunk["content"] for chunk, _ in chunks).strip() == answer_of(values[-1])
    assert data(parts, "updates")[-1]["reporter"]["messages"][0]["content"] == answer_of(values[-1])
    assert {"on_tool_start", "on_tool_end", "on_chat_model_stream"} <= {
        one["event"] for one in data(parts, "events")
    }
    assert "tool_call" in {one["type"] for one in data(parts, "custom")}
    state = await client.threads.get_state(thread)
    assert state["values"] == values[-1]
    assert list(state["next"]) == []


async def test_the_work_of_members_is_that_of_subgraphs(client: LangGraphClient):
    whole = await streamed(client, await new_thread(client), stream_subgraphs=True)
    names = {part.event.partition(":")[0] for part in whole if "|" in part.event}
    assert {"messages|coder", "messages|planner", "updates|coder"} <= names
    assert '"thought"' not in json.dumps(data(whole, "messages"))


async def test_a_stream_that_was_cut_off_goes_on_after_its_newest_part(client: LangGraphClient):
    thread = await new_thread(client)
    parts = await streamed(client, thread)
    numbered = [part for part in parts if part.id and part.event not in ("end", "metadata")]
    run_id = parts[0].data["run_id"]
    for cut in (0, len(numbered) // 2, len(numbered) - 1):
        joined = client.runs.join_stream(thread, run_id, last_event_id=numbered[cut].id, stream_mode=MODES)
        rest = [part async for part in joined if part.event not in ("end", "metadata")]
        assert rest == numbered[cut + 1 :]
    again = [part async for part in client.runs.join_stream(thread, run_id, stream_mode=MODES)]
    assert [part for part in again if part.event not in ("end", "metadata")] == numbered


async def test_a_run_is_waited_for_joined_listed_and_read(client: LangGraphClient, model: OpenAIServer):
    model.reset(TALK)
    thread = await new_thread(client)
    values: Any = await client.runs.wait(thread, "maniple", input=asking("Hi"))
    assert answer_of(values) == "Hello! How are you?"
    [run] = await client.runs.list(thread)
    assert run["status"] == "success"
    assert (await client.runs.get(thread, run["run_id"]))["thread_id"] == thread
    assert await client.runs.join(thread, run["run_id"]) == values
    with pytest.raises(APIStatusError):
        await client.runs.get(await new_thread(client), run["run_id"])


async def test_a_run_in_the_background_and_one_without_a_thread_have_answers(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset(TALK)
    run = await client.runs.create(None, "maniple", input=asking("Hi"))
    assert answer_of(await client.runs.join(run["thread_id"], run["run_id"])) == "Hello! How are you?"
    alone: Any = await client.runs.wait(None, "maniple", input=asking("Hi"))
    assert len(alone["messages"]) == 2


async def test_a_conversation_goes_on_and_its_questions_and_runs_are_states(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset(TALK)
    thread = str(uuid4())
    for text in ("Hi", "And now?"):
        await client.runs.wait(thread, "maniple", input=asking(text), if_not_exists="create")
    states = await client.threads.get_history(thread)
    newest, question, first, _, start = states
    said = [[one["type"] for one in state["values"].get("messages", ())] for state in states]
    assert said == [["human", "ai", "human", "ai"][:length] for length in (4, 3, 2, 1, 0)]
    assert [one["metadata"]["step"] for one in states] == [3, 2, 1, 0, -1]
    ids = [one["checkpoint"]["checkpoint_id"] for one in states]
    parents = [(one["parent_checkpoint"] or {}).get("checkpoint_id") for one in states]
    assert parents == [*ids[1:], None]
    assert (list(question["next"]), list(first["next"]), list(start["next"])) == (["team"], [], [])
    for state in states:
        assert (
            await client.threads.get_state(thread, checkpoint_id=state["checkpoint"]["checkpoint_id"])
            == state
        )
        assert await client.threads.get_state(thread, checkpoint=state["checkpoint"]) == state
    assert await client.threads.get_history(thread, before=newest["checkpoint"]) == states[1:]
    assert await client.threads.get_history(thread, checkpoint=first["checkpoint"]) == states[2:]


def told(values: Any) -> list[str]:
    return [one["content"] for one in values["messages"]]


async def test_an_earlier_question_is_asked_again_on_a_branch_of_which_the_thread_has_the_states(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset({"coordinator": [reply(f"Answer {number}.") for number in range(1, 10)]})
    thread = await new_thread(client)
    for text in ("One?", "Two?"):
        await client.runs.wait(thread, "maniple", input=asking(text))
    newest, question, first, first_question, start = await client.threads.get_history(thread)
    begun = ["One?", "Answer 1."]

    async def go(state: Any, **options: Any) -> Any:
        return await client.runs.wait(thread, "maniple", checkpoint=state["checkpoint"], **options)

    assert told(await go(question)) == [*begun, "Two?", "Answer 3."]
    assert told(await go(first, input=asking("Third?"))) == [*begun, "Third?", "Answer 4."]
    assert told(await go(start, input=asking("Other?"))) == ["Other?", "Answer 5."]
    assert told(await go(first_question)) == ["One?", "Answer 6."]
    states = await client.threads.get_history(thread, limit=100)
    assert len(states) == 5 + 2 * 2 + 2  # a question that is asked again is no new one
    children = [one["parent_checkpoint"] == first["checkpoint"] for one in states]
    assert sum(children) == 2
    third = next(one for one in states if told(one["values"])[2:] == ["Third?", "Answer 4."])
    assert told(await go(third, input=asking("More?"))) == [
        *begun,
        "Third?",
        "Answer 4.",
        "More?",
        "Answer 7.",
    ]
    # Without a checkpoint, the thread goes on from its newest one, that of whichever branch.
    assert told((await client.threads.get_state(thread))["values"])[-1] == "Answer 7."
    assert told((await client.threads.get(thread))["values"])[-1] == "Answer 7."
    assert told(await client.runs.wait(thread, "maniple", input=asking("On?")))[3:] == [
        *("Answer 4.", "More?", "Answer 7.", "On?", "Answer 8.")
    ]
    assert told(await go(newest, input=asking("Back?")))[2:] == ["Two?", "Answer 2.", "Back?", "Answer 9."]
    assert len(await client.runs.list(thread, limit=100)) == 9


async def test_the_stream_of_a_branch_is_joined_under_the_name_of_its_thread(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset({"coordinator": [reply("Hello."), reply("Good day.")]})
    thread = await new_thread(client)
    await client.runs.wait(thread, "maniple", input=asking("Hi"))
    [_, question, _] = await client.threads.get_history(thread)
    parts = await streamed(client, thread, input=None, checkpoint=question["checkpoint"])
    assert told(data(parts, "values")[-1]) == ["Hi", "Good day."]
    joined = client.runs.join_stream(thread, parts[0].data["run_id"], stream_mode=MODES)
    assert data([part async for part in joined], "values") == data(parts, "values")


@pytest.mark.parametrize(
    ("place", "options"),
    [
        (0, {"input": None}),
        (1, {"input": asking("More?")}),
        (2, {"input": None}),
        (2, {"input": asking([{"type": "image", "base64": PICTURE, "mime_type": "image/png"}])}),
        (2, {"input": {"messages": [*asking("A")["messages"], *asking("B")["messages"]]}}),
        (1, {"command": {"resume": "yes"}}),
    ],
)
async def test_what_cannot_be_done_from_an_earlier_state_is_refused(
    client: LangGraphClient, model: OpenAIServer, place: int, options: Any
):
    model.reset(TALK)
    thread = await new_thread(client)
    for text in ("Hi", "And now?"):
        await client.runs.wait(thread, "maniple", input=asking(text))
    states = await client.threads.get_history(thread)
    with pytest.raises(APIStatusError) as refused:
        await client.runs.create(thread, "maniple", checkpoint=states[place]["checkpoint"], **options)
    assert refused.value.response.json()["code"] == ("unsupported" if place else "nothing_to_retry")
    assert len(await client.runs.list(thread)) == 2


async def test_the_same_message_is_not_asked_twice(client: LangGraphClient, model: OpenAIServer):
    model.reset(TALK)
    thread = await new_thread(client)
    given = asking("Hi", id=str(uuid4()))
    first = await client.runs.wait(thread, "maniple", input=given)
    assert await client.runs.wait(thread, "maniple", input=given) == first
    assert len(await client.runs.list(thread)) == 1


@pytest.mark.parametrize(
    ("resume", "expected"),
    [
        ({"decisions": [{"type": "edit", "edited_action": EDITED}]}, "edited"),
        ({"type": "edit", "args": EDITED["args"]}, "edited"),
        ([{"type": "edit", "args": EDITED}], "edited"),
        ({"decisions": [{"type": "approve"}]}, "5\\n"),
        ([{"type": "accept", "args": None}], "5\\n"),
        ({"decisions": [{"type": "reject", "message": "Too risky."}]}, "Too risky."),
    ],
)
async def test_an_approval_is_an_interrupt_with_the_decisions_of_langchain(
    client: LangGraphClient, model: OpenAIServer, resume: Any, expected: str
):
    model.reset(APPROVAL)
    thread = await new_thread(client)
    parts = await streamed(client, thread)
    [asked] = data(parts, "updates")[-1]["__interrupt__"]
    assert asked["value"]["action_requests"][0]["args"] == {"cmd": "echo 5"}
    assert data(parts, "values")[-1]["__interrupt__"] == [asked]
    state = await client.threads.get_state(thread)
    assert (state["tasks"][0]["interrupts"], list(state["interrupts"])) == ([asked], [asked])
    assert (await client.threads.get(thread))["status"] == "interrupted"
    done = await streamed(client, thread, input=None, command={"resume": {asked["id"]: resume}})
    assert "4" in answer_of(data(done, "values")[-1])
    assert expected in json.dumps(model.requests)


async def test_a_question_is_answered_by_a_text_or_by_the_next_message(
    client: LangGraphClient, model: OpenAIServer
):
    for options in ({"command": {"resume": "1 and 3"}}, {"input": asking("1 and 3")}):
        model.reset(ASKS)
        thread = await new_thread(client)
        asked: Any = await client.runs.wait(thread, "maniple", input=asking())
        assert asked["__interrupt__"][0]["value"]["question"] == "Which numbers?"
        done: Any = await client.runs.wait(thread, "maniple", **options)
        said = [(one["type"], one["content"]) for one in done["messages"]]
        assert said[:3] == [("human", "1+3=?"), ("ai", "Which numbers?"), ("human", "1 and 3")]
        assert "__interrupt__" not in done
        with pytest.raises(APIStatusError) as refused:
            await client.runs.create(thread, "maniple", command={"resume": "again"})
        assert refused.value.response.status_code == 409


async def test_a_run_that_waits_is_cancelled_by_a_command_that_goes_to_the_end(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset(ASKS)
    thread = await new_thread(client)
    await client.runs.wait(thread, "maniple", input=asking())
    end: Any = {"goto": "__end__"}
    parts = await streamed(client, thread, input={}, command=end)
    assert (parts[-1].event, data(parts, "values")[-1].get("__interrupt__")) == ("end", None)
    [newest, *_] = await client.threads.get_history(thread)
    assert (newest["next"], newest["tasks"]) == ([], [])
    with pytest.raises(APIStatusError) as refused:
        await client.runs.create(thread, "maniple", command=end)
    assert refused.value.response.status_code == 409
    answered: Any = await client.runs.wait(thread, "maniple", input=asking())
    assert "4" in answer_of(answered)


async def test_a_run_at_work_has_a_next_node_in_its_state_and_none_in_the_history(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset({"coordinator": [reply("Hello!", hang=True)]})
    thread = await new_thread(client)
    await client.runs.create(thread, "maniple", input=asking("Hi"))
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    state = await client.threads.get_state(thread)
    [newest, *_] = await client.threads.get_history(thread)
    assert (state["next"], newest["next"]) == (["team"], [])
    assert newest["tasks"] == state["tasks"] != []
    await asyncio.to_thread(model.release)


async def test_what_a_run_asks_is_the_newest_message_below_which_agent_chat_ui_shows_it(
    client: LangGraphClient, model: OpenAIServer
):
    greeting = [reply("Hello."), call("handoff_to_planner")]
    for answer, said in (({"input": asking("yes")}, ["yes"]), ({"command": {"resume": APPROVED}}, [])):
        model.reset({**APPROVAL, "coordinator": greeting})
        thread = await new_thread(client)
        await client.runs.wait(thread, "maniple", input=asking("Hi!"))
        asked: Any = await client.runs.wait(thread, "maniple", input=asking())
        assert [one["type"] for one in asked["messages"]] == ["human", "ai", "human", "ai"]
        assert "echo 5" in answer_of(asked)
        assert (await client.threads.get_state(thread))["values"]["messages"] == asked["messages"]
        done: Any = await client.runs.wait(thread, "maniple", **answer)
        # A person's words stay with the question; buttons leave none.
        assert [one["content"] for one in done["messages"][3:] if one["type"] == "human"] == said
        assert len(done["messages"]) == 4 + 2 * len(said)


@pytest.mark.parametrize("resume", ["accept", {"decisions": [{"type": "approve"}]}])
async def test_a_plan_is_reviewed(client: LangGraphClient, resume: Any):
    thread = await new_thread(client)
    context = {"auto_accepted_plan": False}
    shown: Any = await client.runs.wait(thread, "maniple", input=asking(), context=context)
    assert shown["__interrupt__"][0]["value"]["kind"] == "plan_review"
    assert [one["type"] for one in shown["messages"]] == ["human", "ai"]
    assert "Compute" in answer_of(shown)
    assert "4" in answer_of(await client.runs.wait(thread, "maniple", command={"resume": resume}))


async def test_a_question_about_a_plan_is_answered_in_the_conversation(
    client: LangGraphClient, model: OpenAIServer
):
    question, no = "Is it undoable?", "No, it deletes the file for good."
    model.reset({**SIMPLE, "supervisor": [reply(json.dumps({"is_question": True, "reply": no}))]})
    thread = await new_thread(client)
    context = {"auto_accepted_plan": False}
    await client.runs.wait(thread, "maniple", input=asking(), context=context)
    shown: Any = await client.runs.wait(thread, "maniple", command={"resume": question})
    assert shown["__interrupt__"][0]["value"]["kind"] == "plan_review"
    assert [one["content"] for one in shown["messages"]][-2:] == [question, no]
    assert "4" in answer_of(await client.runs.wait(thread, "maniple", command={"resume": "accept"}))


async def test_a_run_is_cancelled_by_its_client_alone(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [{"hang": True}]})
    thread = await new_thread(client)
    run = await client.runs.create(thread, "maniple", input=asking())
    assert (await client.threads.get(thread))["status"] == "busy"
    with pytest.raises(APIStatusError) as refused:
        await client.runs.create(thread, "maniple", input=asking("2"), multitask_strategy="reject")
    assert refused.value.response.status_code == 409
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"


@pytest.mark.parametrize("strategy", ["rollback", "interrupt"])
async def test_a_new_message_takes_the_place_of_a_run_at_work(
    client: LangGraphClient, model: OpenAIServer, strategy: Any
):
    model.reset({"coordinator": [{"hang": True}, reply("Done.")]})
    thread = await new_thread(client)
    await client.runs.create(thread, "maniple", input=asking("First"))
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    values: Any = await client.runs.wait(
        thread, "maniple", input=asking("Second"), multitask_strategy=strategy
    )
    texts = [one["content"] for one in values["messages"]]
    assert texts == [*([] if strategy == "rollback" else ["First"]), "Second", "Done."]


async def test_on_disconnect_decides_whether_a_run_ends_with_its_stream(
    client: LangGraphClient, model: OpenAIServer
):
    for mode, ends in (("cancel", True), (None, False)):
        model.reset({"coordinator": [reply("Hello!", hang=True)]})
        thread = await new_thread(client)
        given: Any = {"input": asking(), "on_disconnect": mode}
        async for part in client.runs.stream(thread, "maniple", **given):
            run_id = part.data["run_id"]
            break
        if ends:
            await client.runs.join(thread, run_id)
            assert (await client.runs.get(thread, run_id))["status"] == "interrupted"
        else:
            assert (await client.runs.get(thread, run_id))["status"] in ("pending", "running")
            await asyncio.to_thread(model.release)
            assert answer_of(await client.runs.join(thread, run_id))


async def test_a_run_that_fails_is_an_error(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    thread = await new_thread(client)
    parts = await streamed(client, thread)
    assert parts[-1].event == "error"
    assert parts[-1].data["error"]
    assert (await client.threads.get(thread))["status"] == "error"
    failed: Any = await client.runs.wait(thread, "maniple", input=asking("2"), raise_error=False)
    assert failed["__error__"]["error"] == parts[-1].data["error"]
    model.reset(TALK)
    assert answer_of(await client.runs.wait(thread, "maniple")) == "Hello! How are you?"


async def test_threads_are_found_counted_renamed_and_deleted(client: LangGraphClient, model: OpenAIServer):
    model.reset(TALK)
    thread = str(uuid4())
    made = await client.threads.create(thread_id=thread, metadata={"title": f"The {thread}"})
    assert made["thread_id"] == thread
    with pytest.raises(APIStatusError):
        await client.threads.create(thread_id=thread)
    assert (await client.threads.create(thread_id=thread, if_exists="do_nothing"))["created_at"]
    await client.runs.wait(thread, "maniple", input=asking("Hi"))
    [found] = await client.threads.search(metadata={"title": f"The {thread}"})
    assert answer_of(found["values"]) == "Hello! How are you?"
    assert thread in [
        one["thread_id"] for one in await client.threads.search(metadata={"graph_id": "maniple"})
    ]
    assert await client.threads.search(metadata={"user": "none"}) == []
    assert await client.threads.count(metadata={"title": f"The {thread}"}) == 1
    await client.threads.update(thread, metadata={"title": "Another"})
    assert (await client.threads.get(thread))["metadata"]["title"] == "Another"
    await client.threads.delete(thread)
    with pytest.raises(APIStatusError):
        await client.threads.get_state(thread)


async def test_threads_are_pruned(client: LangGraphClient):
    kept, *gone = [await new_thread(client) for _ in range(3)]
    pruned: Any = await client.threads.prune([*gone, gone[0], str(uuid4())])
    assert pruned == {"pruned_count": 2}
    for thread in gone:
        with pytest.raises(APIStatusError) as refused:
            await client.threads.get(thread)
        assert refused.value.response.status_code == 404
    with pytest.raises(APIStatusError) as refused:
        await client.threads.prune([kept], strategy="keep_latest")
    assert refused.value.response.json()["code"] == "unsupported"
    assert (await client.threads.get(kept))["thread_id"] == kept


async def test_a_copy_of_a_thread_has_its_state_and_goes_on_by_itself(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset({"coordinator": [reply("Hello!"), reply("Yes."), reply("No.")]})
    thread = (await client.threads.create(metadata={"user": "Ada"}))["thread_id"]
    await client.runs.wait(thread, "maniple", input=asking("Hi"))
    copy: Any = await client.http.post(f"/threads/{thread}/copy", json=None)
    name = copy["thread_id"]
    assert copy["metadata"]["user"] == "Ada"
    assert copy["values"] == (await client.threads.get(thread))["values"]
    with pytest.raises(APIStatusError) as refused:  # nothing of its own can be retried
        await client.runs.create(name, "maniple")
    assert refused.value.response.status_code == 422
    await client.runs.wait(name, "maniple", input=asking("Really?"))
    assert "Hello!" in json.dumps(model.requests[-1])
    await client.runs.wait(thread, "maniple", input=asking("Really not?"))
    texts = [
        [one["content"] for one in (await client.threads.get_state(one))["values"]["messages"]]
        for one in (name, thread)
    ]
    assert texts == [["Hi", "Hello!", "Really?", "Yes."], ["Hi", "Hello!", "Really not?", "No."]]
    assert {one["thread_id"] for one in await client.threads.search(limit=2)} == {thread, name}
    model.reset({"coordinator": [{"hang": True}]})
    run = await client.runs.create(thread, "maniple", input=asking("And?"))
    with pytest.raises(APIStatusError) as refused:
        await client.threads.copy(thread)
    assert refused.value.response.status_code == 409
    await client.runs.cancel(thread, run["run_id"])


async def test_a_state_is_not_written_and_a_run_not_deleted_alone(
    client: LangGraphClient, model: OpenAIServer
):
    model.reset(TALK)
    thread = await new_thread(client)
    await client.runs.wait(thread, "maniple", input=asking("Hi"))
    [run] = await client.runs.list(thread)
    for refusal in (client.threads.update_state(thread, asking()), client.runs.delete(thread, run["run_id"])):
        with pytest.raises(APIStatusError) as refused:
            await refusal
        assert refused.value.response.json()["code"] == "unsupported"
    with pytest.raises(APIStatusError) as refused:
        await client.threads.update_state(str(uuid4()), asking())
    assert refused.value.response.status_code == 404
    assert (await client.runs.list(thread)) == [run]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"input": {"messages": []}}, 422),
        ({"input": {"messages": [{"role": "assistant", "content": "Hi"}]}}, 422),
        ({"input": asking(" ")}, 422),
        ({"input": asking([{"type": "image", "file_id": "f"}])}, 422),
        ({"input": None}, 422),
        ({"context": {"depth": "bottomless"}}, 422),
        ({"interrupt_before": ["planner"]}, 422),
        ({"webhook": "http://127.0.0.1/"}, 422),
        ({"stream_mode": ["debug"]}, 422),
        ({"checkpoint_id": "none"}, 422),
        ({"command": {"goto": "planner"}}, 422),
        ({"command": {"resume": "yes"}}, 409),
        ({"assistant_id": "agent"}, 404),
    ],
)
async def test_what_the_team_cannot_do_is_refused(server: ServerProcess, options: Any, status: int):
    async with httpx.AsyncClient(base_url=server.url) as http:
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        given = {"assistant_id": "maniple", "input": asking(), **options}
        refused = await http.post(f"/threads/{thread}/runs/stream", json=given)
        assert (refused.status_code, bool(refused.json()["code"])) == (status, True)
        assert (await http.get(f"/threads/{thread}/runs")).json() == []


async def test_pictures_and_files_reach_the_team(client: LangGraphClient, model: OpenAIServer):
    model.reset(
        {**SIMPLE, "coder": [call("python_repl_tool", code="print(open('n.csv').read())"), reply("4")]}
    )
    file = {"type": "file", "mime_type": "text/csv", "base64": "MSwz", "metadata": {"filename": "n.csv"}}
    picture = {"type": "image", "mime_type": "image/png", "base64": PICTURE}
    parts = [{"type": "text", "text": "What is the sum?"}, picture, file]
    await client.runs.wait(await new_thread(client), "maniple", input=asking(parts))
    assert "1,3" in json.dumps(model.requests)


async def test_the_team_is_a_node_of_another_graph(client: LangGraphClient):
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda _: {"messages": [AIMessage("Let me ask."), HumanMessage("1+3=?")]})
    graph.add_node("team", RemoteGraph("maniple", client=client, name="team"))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "team")
    config: Any = {"configurable": {"thread_id": str(uuid4())}}
    parent = graph.compile(checkpointer=InMemorySaver())
    done = await parent.ainvoke({"messages": [HumanMessage("Hi")]}, config)
    assert "4" in done["messages"][-1].content
    assert [one.type for one in done["messages"]] == ["human", "ai", "human", "ai"]


async def test_an_approval_reaches_the_user_of_a_parent_graph(client: LangGraphClient, model: OpenAIServer):
    model.reset(APPROVAL)
    team = RemoteGraph("maniple", client=client)
    own: Any = {"configurable": {"thread_id": str(uuid4())}}
    parent = put_into_graph(team, own)
    config: Any = {"configurable": {"thread_id": str(uuid4())}}
    paused = await parent.ainvoke({"messages": [HumanMessage("1+3=?")]}, config)
    assert paused["__interrupt__"][0].value["action_requests"][0]["name"] == "bash_tool"
    done = await parent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert "4" in done["messages"][-1].content
    assert len(done["messages"]) == 2
    assert (await team.aget_state(own)).values["messages"][0]["id"] == done["messages"][0].id


async def test_keys_keep_threads_apart(model: OpenAIServer, tmp_path: Path):
    model.reset(TALK)
    keys = [await _add_key(tmp_path, name) for name in ("a", "b")]
    with server_process(environment(model.base_url, tmp_path), tmp_path) as server:
        one, other = (get_client(url=server.url, api_key=key) for key in keys)
        await one.runs.wait("notes", "maniple", input=asking("Hi"), if_not_exists="create")
        with pytest.raises(APIStatusError) as refused:
            await other.threads.get_state("notes")
        assert refused.value.response.status_code == 404
        assert await other.threads.search() == []
        await other.runs.wait("notes", "maniple", input=asking("Hi"), if_not_exists="create")
        assert len((await one.threads.get_state("notes"))["values"]["messages"]) == 2
        async with httpx.AsyncClient(base_url=server.url) as http:
            assert (await http.get("/info")).status_code == 401
        for client in (one, other):
            await client.aclose()


async def _add_key(home: Path, name: str) -> str:
    async with open_store(home / "data/maniple.db", home / "data/artifacts", server=False) as store:
        return (await store.keys.add(name))[1]


async def test_runs_of_a_batch_are_all_started_or_none(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!")]})
    asked: list[Any] = [{"assistant_id": "maniple", "input": asking(text)} for text in ("Hi", "Ho")]
    started = await client.runs.create_batch(asked)
    for run in started:
        values: Any = await client.runs.join(run["thread_id"], run["run_id"])
        assert answer_of(values) == "Hello!"
    assert len({run["thread_id"] for run in started}) == 2
    before = await client.threads.count()
    with pytest.raises(APIStatusError) as refused:
        await client.runs.create_batch([*asked, {**asked[0], "input": {"messages": []}}])
    assert refused.value.response.status_code == 422
    [ended] = await client.threads.search(limit=1)  # those before it have ended without an answer
    assert ended["status"] == "idle"
    assert await client.threads.count() == before + 2


async def test_a_status_finds_runs_behind_many_newer_ones(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}, *[reply("Hello!")] * 3]})
    thread = await new_thread(client)
    failed: Any = await client.runs.create(thread, "maniple", input=asking("Hi"))
    await client.runs.join(thread, failed["run_id"])
    for text in ("One", "Two", "Three"):
        await client.runs.wait(thread, "maniple", input=asking(text))
    [found] = await client.runs.list(thread, limit=1, status="error")
    assert found["run_id"] == failed["run_id"]
    newest = await client.runs.list(thread, limit=2, offset=1, status="success")
    assert [one["run_id"] for one in newest] == [
        one["run_id"] for one in await client.runs.list(thread, limit=2, offset=1)
    ]


async def test_a_cron_is_made_found_changed_and_deleted(client: LangGraphClient):
    made: Any = await client.crons.create(
        "maniple", schedule="0 8 * * 1", input=asking(), metadata={"name": "Sums"}, timezone="Europe/Berlin"
    )
    assert (made["enabled"], made["timezone"], made["thread_id"]) == (True, "Europe/Berlin", None)
    thread = await new_thread(client)
    of_thread: Any = await client.crons.create_for_thread(
        thread, "maniple", schedule="0 9 * * *", input=asking("And?"), enabled=False
    )
    assert of_thread["next_run_date"] is None
    assert [one["cron_id"] for one in await client.crons.search(thread_id=thread)] == [of_thread["cron_id"]]
    assert [one["cron_id"] for one in await client.crons.search(metadata={"name": "Sums"})] == [
        made["cron_id"]
    ]
    assert await client.crons.count() == 2
    changed: Any = await client.crons.update(of_thread["cron_id"], enabled=True, input=asking("Why?"))
    assert changed["payload"]["input"]["messages"][0]["content"] == "Why?"
    assert changed["next_run_date"]
    for one in (made, of_thread):
        await client.crons.delete(one["cron_id"])
    assert await client.crons.search() == []


@pytest.mark.parametrize(
    "options",
    [
        {"webhook": "https://hooks.example/x"},
        {"on_run_completed": "delete"},
        {"multitask_strategy": "rollback"},
        {"metadata": {"colour": "red"}},
    ],
    ids=str,
)
async def test_what_a_cron_cannot_do_is_refused(client: LangGraphClient, options: dict[str, Any]):
    with pytest.raises(APIStatusError) as refused:
        await client.crons.create("maniple", schedule="0 8 * * 1", input=asking(), **options)
    assert refused.value.response.json()["code"] == "unsupported"


async def test_a_cron_expression_that_is_none_is_refused(client: LangGraphClient):
    with pytest.raises(APIStatusError) as refused:
        await client.crons.create("maniple", schedule="every day", input=asking())
    assert refused.value.response.json()["code"] == "invalid_schedule"


@pytest.mark.slow
async def test_a_cron_starts_its_run_at_its_time(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!")] * 3})
    thread = await new_thread(client)
    cron: Any = await client.crons.create_for_thread(thread, "maniple", schedule="* * * * *", input=asking())
    async with asyncio.timeout(100):
        while not (runs := await client.runs.list(thread, status="success")):  # noqa: ASYNC110
            await asyncio.sleep(1)
    await client.crons.delete(cron["cron_id"])
    assert answer_of((await client.threads.get_state(thread))["values"]) == "Hello!"
    assert len(runs) == 1
