"""A worker as a ReAct agent: LangChain's `create_agent` with our middleware."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph

from maniple.agents.briefing import build_messages, format_items
from maniple.agents.middleware.base import chain_middleware
from maniple.agents.middleware.call_order import (
    CallOrder,
    ConcurrencyLimit,
    keep_call_order,
    limit_concurrency,
)
from maniple.agents.middleware.context_window import ContextCompaction, fit_messages
from maniple.agents.middleware.fencing import UntrustedDataFencing
from maniple.agents.middleware.limits import (
    ModelCallLimit,
    PartialWork,
    StepLimits,
    ToolCallLimit,
    ToolTimeouts,
)
from maniple.agents.middleware.text_tools import TextToolCalls
from maniple.agents.middleware.tool_availability import DynamicTools, TerminalTools
from maniple.agents.middleware.tool_calls import RecordedToolCalls
from maniple.agents.middleware.tool_errors import ArgumentErrors, build_failure_middleware
from maniple.agents.middleware.tool_results import WebExtracts
from maniple.agents.roles import Role
from maniple.agents.stuck import StuckDetection, watch_step
from maniple.agents.task import Task, format_caller, format_files, set_current_task
from maniple.llms import broke_off
from maniple.llms.context_windows import room_of
from maniple.text import without_thoughts

CONVERSATION_SHARE = 0.25
"""Of the prompt's room: what an agent that answers alone is given of the conversation, the newest of it."""


@contextmanager
def step_context(task: Task) -> Iterator[None]:
    """Do what is done within as one step of one agent, which works on `task`."""
    with set_current_task(task), limit_concurrency(), keep_call_order(), watch_step():
        yield


@dataclass(frozen=True, slots=True)
class ExtraMiddleware:
    """What an agent has beside the usual middleware, from the outside in."""

    around_answers: Sequence[AgentMiddleware[Any, Any]] = ()
    """Around each answer of the model with its retries, and each call with its record."""
    text_tools: TextToolCalls = field(default_factory=TextToolCalls)
    """Who talks to models that have no tool calls."""
    around_calls: Sequence[AgentMiddleware[Any, Any]] = ()
    """Around what a call does, once it is its turn; and each request to the model."""


@dataclass(frozen=True, slots=True)
class ReactAgent:
    """Think, call tools, read the results, until the step is done."""

    role: Role
    has_tools: bool
    graph: CompiledStateGraph[Any, Any, Any, Any]
    room: int
    """Tokens that a prompt of its model may have."""

    async def work(self, task: Task) -> str:
        messages = self._messages(task)
        with step_context(task):
            result = await self.graph.ainvoke({"messages": messages, "given": len(messages)})
        return extract_answer(result["messages"])

    def _messages(self, task: Task) -> list[BaseMessage]:
        prompt = self.role.instructions(
            tools=self.has_tools, team=task.team, locale=task.locale, language=task.locale
        )
        if task.conversation:
            said = fit_messages(task.conversation, int(CONVERSATION_SHARE * self.room))
            items = format_items(task.items, task.older_items)
            listed = [HumanMessage(items)] if items else []
            system = SystemMessage(prompt + format_caller(task.caller) + format_files(task.files))
            return [system, *said[:-1], *listed, *said[-1:]]
        return [SystemMessage(prompt), *build_messages(task, self.room)]


def extract_answer(messages: Sequence[BaseMessage]) -> str:
    """Return what an agent's last message says."""
    last = messages[-1]
    return without_thoughts(last.text) if isinstance(last, AIMessage) else ""


def build_react_agent(
    role: Role,
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    limits: StepLimits,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    offered: Sequence[AgentMiddleware[Any, Any]] = (),
) -> ReactAgent:
    """Build the agent of `role`, which keeps the `limits` for one task."""
    graph = build_react_graph(
        role.name,
        model,
        tools,
        limits=limits,
        additions=ExtraMiddleware(around_calls=middleware),
        offered=offered,
    )
    has_tools = bool(tools) or any(isinstance(one, DynamicTools) for one in offered)
    return ReactAgent(role, has_tools, graph, room_of(model))


def build_react_graph(
    name: str,
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    limits: StepLimits,
    additions: ExtraMiddleware,
    offered: Sequence[AgentMiddleware[Any, Any]] = (),
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the loop of thinking, acting and observing; it is run within `one_step`.

    `offered` decide which tools a prompt has; they are around all else, so that no other part of it speaks
    of more. The order counts: what stands first is around all that follows.
    """
    stack: list[AgentMiddleware[Any, Any]] = [
        *offered,
        # Around all that may end the step: what was found until then goes with the reason.
        PartialWork(),
        # Before a call of the model is counted: after a terminal tool there is none.
        TerminalTools(),
        # Before the conversation is compacted, which would be for nothing.
        ModelCallLimit(limits.model_calls),
        # Before what is added to one prompt alone, and would else be kept in a summary.
        ContextCompaction(model, tools),
        # Its nudge comes last of what the model reads.
        StuckDetection(),
        # The last to change what is shown, but for the form that an endpoint without tools takes it in.
        UntrustedDataFencing(),
        *additions.around_answers,
        # Around what reads the answer: an answer that broke off is asked for once more.
        ModelRetryMiddleware(max_retries=2, retry_on=broke_off, on_failure="error", initial_delay=0.5),
        # Around what finds calls in text, to know of those, too; a call waits for its turn before all else.
        CallOrder(),
        additions.text_tools,
        # Before a call is recorded or approved: one too many is neither.
        ToolCallLimit(limits.tool_calls),
        # Before `ToolCallsOnce`: a call that waits is not yet noted as begun.
        ConcurrencyLimit(),
        # Around what changes results: they are recorded as the model reads them.
        RecordedToolCalls(),
        *additions.around_calls,
        # Around what makes failures messages, some of which it adds the schema to.
        ArgumentErrors(),
        # Around whatever may raise in a call, the end of its time among it: the model reads why.
        build_failure_middleware(),
        # Around the call alone, so that everybody further out has the extract.
        WebExtracts(model),
        # Nothing but the tool's own work is timed: no waiting, and no person's word.
        ToolTimeouts(limits.tool_seconds),
    ]
    return create_agent(model, list(tools), middleware=chain_middleware(stack), name=name)
