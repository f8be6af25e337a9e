"""Long loops and long threads on an endpoint whose window is small."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool, tool

from maniple.agents import ROLES, StepFailed, StepLimits, Task, build_react_agent
from maniple.agents.middleware.context_window import ContextCompaction, send_within_window, summarize
from maniple.agents.middleware.tool_availability import DynamicTools
from maniple.errors import ModelError
from maniple.llms import ask
from maniple.scope.budget import Budget, UsageMeter
from maniple.types import AGENT_MARK
from tests.agents.endpoints import agent_with, kinds, model_at, narrow, results_shown, run_events, shown
from tests.agents.test_context_fitting import assert_paired
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio
TASK = Task(request="read the ten pages", title="Read", description="read page after page")
SUMMARY = reply("Pages read so far: the secret of page 0 is 42.")
PAGE = 4_000


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "word " * (PAGE // 5)


def loop(turns, summary=SUMMARY):
    """The coder reads one page after the other; who shortens the record is nobody's role ("other")."""
    return {"coder": [*(call("read", page=n) for n in range(turns)), reply("All read.")], "other": [summary]}


def reader(model):
    return agent_with(model, [read], ContextCompaction(model, [read]))


async def work(server, *, callbacks=(), metadata=None, **options):
    async with model_at(server, **options) as model:
        agent = reader(model)
        config = {"callbacks": list(callbacks), "metadata": metadata or {}}
        return await run_events(agent.graph, {"messages": agent._messages(TASK)}, config)


def prompts(server):
    return [body["messages"] for body in server.requests if shown(body).startswith("You are the coder")]


def result_of(events):
    return next(e for e in reversed(events) if e["event"] == "on_chain_end")["data"]["output"]["messages"]


def assert_wire_paired(messages):
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            asked = next(m for m in reversed(messages[:n]) if m["role"] == "assistant")
            assert message["tool_call_id"] in [one["id"] for one in asked["tool_calls"]]


async def test_a_long_loop_in_a_known_window_is_compacted_and_never_refused():
    with narrow(loop(12), characters=16_000) as server:
        events, error = await work(server, window=4_000)
    assert error is None
    assert result_of(events)[-1].text == "All read."
    assert server.refused == 0
    for messages in prompts(server):
        assert_wire_paired(messages)
        assert messages[0]["content"].startswith("You are the coder")
        assert "read the ten pages" in messages[1]["content"], "the task stays"
    assert "the secret of page 0 is 42" in str(prompts(server)[-1])
    assert "page 11: " in str(prompts(server)[-1]), "the newest result is there"


async def test_what_was_compacted_counts_for_the_limit_of_calls_still():
    pages = [call("read", page=n) for n in range(10)]
    with narrow({"coder": pages, "other": [SUMMARY]}, characters=16_000) as server:
        async with model_at(server, window=4_000) as model:
            limits = StepLimits(model_calls=9, tool_calls=7)
            coder = build_react_agent(ROLES["coder"], model, [read], limits=limits)
            with pytest.raises(StepFailed, match="limit of 9 model calls") as failure:
                await coder.work(TASK)
    assert len(prompts(server)) == 9
    assert len(server.requests) > 9, "something was compacted"
    assert "limit of 7 tool calls" in results_shown(server)[-1]
    assert "the secret of page 0 is 42" in str(failure.value), "what is told as found has the summary"


async def test_everything_is_still_in_the_events_of_the_run():
    with narrow(loop(12), characters=16_000) as server:
        events, _ = await work(server, window=4_000)
    told = [event["data"]["output"].text for event in kinds(events, "on_tool_end")]
    assert [text[:8].strip(": ") for text in told] == [f"page {n}" for n in range(12)]
    assert all(len(text) > PAGE for text in told)
    assert_paired(result_of(events))


async def test_a_summary_is_made_once_and_not_at_every_call():
    with narrow(loop(24), characters=32_000) as server:
        _, error = await work(server, window=8_000)
        summaries = len(server.requests) - len(prompts(server))
    assert error is None
    last = str(prompts(server)[-1])
    assert 2 <= summaries <= 12, "24 pages of 1,000 tokens in a room of 8,000"
    assert last.count("What was done before") == 1, "an earlier summary goes into the new one"


class Offer:
    """One tool of a server that explains itself at length."""

    def __init__(self, characters: int) -> None:
        self.tools = [
            StructuredTool.from_function(coroutine=read_context, name="told", description="x" * characters)
        ]

    def list_tools(self):
        return self.tools

    def find(self, name):
        return None


async def read_context() -> str:
    """Say nothing."""
    return ""


@pytest.mark.parametrize(("described", "summaries"), [(0, 0), (20_000, 1)])
async def test_tools_that_come_and_go_take_their_part_of_the_window(described, summaries):
    with serving(loop(3)) as server:
        async with model_at(server, window=10_000) as model:
            agent = agent_with(
                model, [read], DynamicTools(Offer(described)), ContextCompaction(model, [read])
            )
            await agent.graph.ainvoke({"messages": agent._messages(TASK)})
    assert sum("You shorten the record" in str(body["messages"][0]) for body in server.requests) == summaries


@pytest.mark.parametrize("window", [5_500, 3_000])
async def test_tools_that_fill_the_window_leave_a_part_of_it_to_the_conversation(window):
    with serving(loop(6)) as server:
        async with model_at(server, window=window) as model:
            agent = agent_with(model, [read], DynamicTools(Offer(20_000)), ContextCompaction(model, [read]))
            result = await agent.graph.ainvoke({"messages": agent._messages(TASK)})
    assert result["messages"][-1].text == "All read."
    assert all("read page after page" in str(messages) for messages in prompts(server))


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_window_that_is_unknown_is_learned_from_the_refusal(streaming):
    with narrow(loop(12), characters=16_000) as server:
        async with model_at(server) as model:
            agent = reader(model)
            given = {"messages": agent._messages(TASK)}
            if streaming:
                events, error = await run_events(agent.graph, given, {})
                assert error is None
                answer = result_of(events)[-1]
            else:
                answer = (await agent.graph.ainvoke(given))["messages"][-1]
    assert answer.text == "All read."
    assert server.refused == 1, "from then on it is heeded"


async def test_one_result_longer_than_the_window_is_cut():
    @tool("read")
    async def long_read(page: int) -> str:
        """Read a page."""
        return "first words " + "x" * 200_000 + " last words"

    script = {"coder": [call("read", page=0), reply("Read.")], "other": [SUMMARY]}
    with narrow(script, characters=16_000) as server:
        async with model_at(server, window=4_000) as model:
            agent = agent_with(model, [long_read], ContextCompaction(model, [long_read]))
            assert await agent.work(TASK) == "Read."
        last = prompts(server)[-1][-1]["content"]
    assert "first words" in last
    assert "last words" in last
    assert "characters left out" in last
    assert server.refused == 0


async def test_a_second_overflow_is_an_error_in_words_and_not_a_third_try():
    with narrow(loop(3), characters=50) as server:
        _, error = await work(server)
    assert isinstance(error, ModelError)
    assert error.code == "model_bad_request"
    assert "models.*.context_tokens" in str(error)
    assert "model 'm' at http://127.0.0.1" in str(error)
    assert server.refused == 2


@pytest.mark.parametrize("summary", [{"status": 500}, reply(""), {"status": 400, "error": "no"}])
async def test_a_summary_that_fails_ends_no_run(summary):
    with narrow(loop(8, summary), characters=16_000) as server:
        events, error = await work(server, window=4_000)
    assert error is None
    assert result_of(events)[-1].text == "All read."
    assert server.refused == 0


async def test_shortening_is_counted_but_takes_no_report_s_last_call():
    meter = UsageMeter(Budget(model_calls=2))
    with narrow(loop(9), characters=16_000) as server:
        metadata = {AGENT_MARK: "reporter"}
        _, error = await work(server, callbacks=meter.callbacks, metadata=metadata, window=2_000)
    assert error is not None
    assert len(server.requests) == meter.used.model_calls == 3
    assert meter.exhausted


async def test_a_conversation_is_fitted_and_sent_once_more_when_it_overflows():
    thread = [SystemMessage("You are the coordinator."), HumanMessage("hi " * 3_000)]
    thread.append(AIMessage("Hello. " * 2_000))
    thread.append(HumanMessage("What did I say?"))
    with narrow({"coordinator": [reply("Hi.")]}, characters=8_000) as server:
        async with model_at(server) as model:
            answer = await send_within_window(model, thread, lambda messages: ask(model, messages))
            assert answer.text == "Hi."
            assert server.refused == 1
            assert server.requests[1]["messages"][-1]["content"] == "What did I say?"
            server.reset({"coordinator": [{"status": 401}]})
            with pytest.raises(ModelError) as caught:
                await send_within_window(model, thread[:1], lambda messages: ask(model, messages))
            assert caught.value.code == "model_auth"


async def test_a_record_longer_than_the_window_can_still_be_summarised():
    record = [HumanMessage(f"{n}: " + "word " * 2_000) for n in range(10)]
    with narrow({"other": [SUMMARY]}, characters=8_000) as server:
        async with model_at(server, window=2_000) as model:
            assert "the secret of page 0 is 42" in await summarize(model, record)
        assert server.refused == 0
    with serving({"other": [{"status": 503}]}) as server:
        async with model_at(server) as model:
            assert await summarize(model, record) == ""
