"""deepagents: the team as an asynchronous subagent over the LangGraph API, and embedded as a subagent."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from deepagents import AsyncSubAgent, CompiledSubAgent, create_deep_agent
from deepagents.middleware import async_subagents
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess
from tests.team import scripted_team

pytestmark = pytest.mark.anyio
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
EDITED = {
    "decisions": [{"type": "edit", "edited_action": {"name": "bash_tool", "args": {"cmd": "echo edited"}}}]
}


class ScriptedModel(BaseChatModel):
    """The model of the deep agent: it gives these answers, one after another."""

    answers: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


class DeepAgent:
    """A deep agent whose asynchronous subagent is the team of a server."""

    def __init__(self, url: str) -> None:
        team: AsyncSubAgent = {"name": "team", "description": "Does sums.", "graph_id": "maniple", "url": url}
        self.model = ScriptedModel(answers=[])
        self.graph = create_deep_agent(model=self.model, subagents=[team], checkpointer=InMemorySaver())
        self.config: Any = {"configurable": {"thread_id": "deep"}}

    async def do(self, name: str, **args: Any) -> str:
        """Have it call a tool; return what the tool answers."""
        self.model.answers[:] = [calling(name, **args), AIMessage("Done.")]
        state = await self.graph.ainvoke({"messages": [HumanMessage("Go on.")]}, self.config)
        return str([one for one in state["messages"] if isinstance(one, ToolMessage)][-1].content)

    async def task(self) -> dict[str, Any]:
        """Return the one task that it knows."""
        state = await self.graph.aget_state(self.config)
        [task] = state.values["async_tasks"].values()
        return task


@pytest.fixture
async def deep(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DeepAgent]:
    """A deep agent whose client is closed at the end, which the library leaves open."""
    opened: list[LangGraphClient] = []

    def open_client(**options: Any) -> LangGraphClient:
        opened.append(get_client(**options))
        return opened[-1]

    monkeypatch.setattr(async_subagents, "get_client", open_client)
    yield DeepAgent(server.url)
    for client in opened:
        await client.aclose()


async def test_the_team_is_an_asynchronous_subagent(
    deep: DeepAgent, server: ServerProcess, model: OpenAIServer
):
    model.reset({"coordinator": [reply("It is 4.", hang=True), reply("It is 7.")]})
    await deep.do("start_async_task", description="1+3=?", subagent_type="team")
    task = await deep.task()
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    assert json.loads(await deep.do("check_async_task", task_id=task["task_id"]))["status"] == "running"
    await asyncio.to_thread(model.release)
    async with get_client(url=server.url, api_key=None) as client:
        await client.runs.join(task["thread_id"], task["run_id"])
        ended = json.loads(await deep.do("check_async_task", task_id=task["task_id"]))
        assert (ended["status"], ended["result"]) == ("success", "It is 4.")
        found: Any
        [found] = await client.threads.search(metadata={"parent_thread_id": "deep"})
        assert (found["thread_id"], found["metadata"]["subagent_name"]) == (task["thread_id"], "team")
        await deep.do("update_async_task", task_id=task["task_id"], message="And 3+4?")
        task = await deep.task()
        await client.runs.join(task["thread_id"], task["run_id"])
    again = json.loads(await deep.do("check_async_task", task_id=task["task_id"]))
    assert (again["status"], again["result"]) == ("success", "It is 7.")


@pytest.mark.parametrize(
    ("script", "asked", "answer"), [(ASKS, "Which numbers?", "1 and 3"), (APPROVAL, "echo 5", EDITED)]
)
async def test_a_task_that_asks_waits_for_its_user(
    deep: DeepAgent, server: ServerProcess, model: OpenAIServer, script: Any, asked: str, answer: Any
):
    model.reset(script)
    await deep.do("start_async_task", description="1+3=?", subagent_type="team")
    task = await deep.task()
    async with get_client(url=server.url, api_key=None, timeout=100) as client:
        await client.runs.join(task["thread_id"], task["run_id"])
        waiting = json.loads(await deep.do("check_async_task", task_id=task["task_id"]))
        assert waiting["status"] == "waiting"
        [one] = waiting["interrupts"]
        assert asked in json.dumps(one["value"])
        await client.runs.wait(task["thread_id"], "maniple", command={"resume": {one["id"]: answer}})
    ended = json.loads(await deep.do("check_async_task", task_id=task["task_id"]))
    assert (ended["status"], "The answer is **4**." in ended["result"]) == ("success", True)
    assert answer == "1 and 3" or "edited" in json.dumps(model.requests)


@pytest.mark.slow
async def test_a_task_that_fails_is_an_error_with_its_reason(
    deep: DeepAgent, server: ServerProcess, model: OpenAIServer
):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    await deep.do("start_async_task", description="1+3=?", subagent_type="team")
    task = await deep.task()
    async with get_client(url=server.url, api_key=None) as client:
        await client.runs.join(task["thread_id"], task["run_id"])
    failed = json.loads(await deep.do("check_async_task", task_id=task["task_id"]))
    assert failed["status"] == "error"
    assert "no such thing" in failed["error"]


@pytest.mark.slow
async def test_a_task_of_the_team_is_cancelled(deep: DeepAgent, model: OpenAIServer):
    model.reset({"coordinator": [{"hang": True}]})
    await deep.do("start_async_task", description="1+3=?", subagent_type="team")
    task = await deep.task()
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    await deep.do("cancel_async_task", task_id=task["task_id"])
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)
    assert (await deep.task())["status"] == "cancelled"


async def test_an_embedded_team_is_a_subagent_of_a_deep_agent():
    async with scripted_team(SIMPLE) as it:
        team: CompiledSubAgent = {"name": "team", "description": "Does sums.", "runnable": it.team}
        answers = [calling("task", description="1+3=?", subagent_type="team"), AIMessage("It is 4.")]
        deep = create_deep_agent(model=ScriptedModel(answers=answers), subagents=[team])
        state = await deep.ainvoke({"messages": [HumanMessage("What is 1+3?")]})
        [told] = [one for one in state["messages"] if isinstance(one, ToolMessage)]
        assert "The answer is **4**" in str(told.content)
        assert state["messages"][-1].content == "It is 4."
