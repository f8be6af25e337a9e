"""A worker as a ReAct agent: LangChain's `create_agent` with our middleware."""

from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

# LangChain leaves out type arguments of parameters that are not used here.
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool

from maniple.agents.briefing import build_messages, format_items
from maniple.agents.middleware.base import chain_middleware
from maniple.agents.middleware.call_order import (
    CallOrder,
    ConcurrencyLimit,
    limit_concurrency,
    preserve_call_order,
)
from maniple.agents.middleware.client_tools import ClientTools
from maniple.agents.middleware.context_window import ContextCompaction, fit_messages
from maniple.agents.middleware.continuation import register_calls
from maniple.agents.middleware.empty_answers import EmptyAnswers
from maniple.agents.middleware.fencing import UntrustedDataFencing
from maniple.agents.middleware.final_answers import RejectedCalls
from maniple.agents.middleware.limits import (
    ModelCallLimit,
    PartialWork,
    StepLimits,
    ToolCallLimit,
    ToolTimeouts,
)
from maniple.agents.middleware.picture_room import PictureAdding
from maniple.agents.middleware.text_tools import TextToolCalls
from maniple.agents.middleware.tool_availability import (
    DynamicTools,
    TerminalTools,
    ToolNameRecorder,
    ToolPreparation,
    UnknownTools,
    keep_tools,
)
from maniple.agents.middleware.tool_calls import RecordedToolCalls
from maniple.agents.middleware.tool_errors import ArgumentErrors, build_failure_middleware
from maniple.agents.middleware.tool_results import RepeatedHits, WebExtracts
from maniple.agents.middleware.unfinished_answers import UnfinishedAnswers, check_step
from maniple.agents.middleware.user_messages import PassedOnMessages
from maniple.agents.roles import Role
from maniple.agents.stuck import StuckDetection, watch_step
from maniple.agents.task import (
    Task,
    format_caller,
    format_files,
    format_lost_pictures,
    set_current_task,
)
from maniple.llms import broke_off
from maniple.llms.context_windows import room_of
from maniple.text import without_thoughts
from maniple.tools.client_tools import offered_client_tools
from maniple.tools.item_search import SEARCH_ITEMS
from maniple.tools.web import WEB_SEARCH

CONVERSATION_SHARE = 0.25
"""The share of the prompt's room that an agent which answers alone gets of the conversation, the newest part.
"""


@contextmanager
def step_context(task: Task) -> Generator[None]:
    """Run the body as one step of one agent, which works on `task`."""
    with (
        set_current_task(task),
        limit_concurrency(),
        preserve_call_order(),
        watch_step(),
        keep_tools(),
        register_calls(),
        check_step(),
    ):
        yield


class AgentGraph(Protocol):
    """The part of LangGraph's compiled graphs that is used here, without its open type arguments."""

    async def ainvoke(self, input: Any, /) -> dict[str, Any]:
        """Run the graph on an input of its own type, and return the keys of the state at its end."""
        ...


@dataclass(frozen=True, slots=True)
class ExtraMiddleware:
    """Middleware of an agent beside the usual one, from the outside in."""

    around_answers: Sequence[AgentMiddleware[Any, Any]] = ()
    """Around each model call with its retries, and each tool call with its record."""
    text_tools: TextToolCalls = field(default_factory=TextToolCalls)
    """The middleware for models without tool calling."""
    unfinished: UnfinishedAnswers | None = None
    """The check of answers, if it is not the usual one."""
    around_calls: Sequence[AgentMiddleware[Any, Any]] = ()
    """Around the execution of each tool call, inside of its record; and around each request to the model."""


@dataclass(frozen=True, slots=True)
class ReactAgent:
    """An agent that thinks, calls tools and reads the results until the step is done."""

    role: Role
    has_tools: bool
    graph: AgentGraph
    model: BaseChatModel
    tool_names: frozenset[str] = frozenset()
    """The names of its tools that do not change while the program runs."""
    counts_client_tools: bool = False
    """Whether the functions of a run's client, which it may call, are tools for its prompt."""
    find_outage: Callable[[], Awaitable[str]] | None = None
    """For an agent whose web search is hidden while it does not answer: why it does not now, "" if it does.
    """

    @property
    def room(self) -> int:
        """The number of tokens that a prompt of its model may have."""
        return room_of(self.model)

    async def work(self, task: Task) -> str:
        messages = self._messages(task, await self._find_tools())
        with step_context(task):
            result = await self.graph.ainvoke(
                {"messages": [*messages, *task.continued], "given": len(messages)}
            )
        return extract_answer(result["messages"])

    async def _find_tools(self) -> frozenset[str]:
        """Return the names of the tools that it has now."""
        is_out = self.find_outage is not None and bool(await self.find_outage())
        return self.tool_names - {WEB_SEARCH} if is_out else self.tool_names

    def _messages(self, task: Task, names: Collection[str] = ()) -> list[BaseMessage]:
        searches = SEARCH_ITEMS in names
        has_tools = self.has_tools or (self.counts_client_tools and bool(offered_client_tools()))
        prompt = self.role.instructions(
            names, tools=has_tools, team=task.team, locale=task.locale, language=task.locale
        )
        if task.conversation:
            recent = fit_messages(task.conversation, int(CONVERSATION_SHARE * self.room))
            items = format_items(task.items, task.older_items, searches=searches)
            listed = [HumanMessage(items)] if items else []
            about = format_caller(task.caller) + format_files(task.files)
            system = SystemMessage(prompt + about + format_lost_pictures(task.lost_pictures))
            meanwhile = task.meanwhile()
            written = [HumanMessage(meanwhile)] if meanwhile else []
            return [system, *recent[:-1], *listed, *recent[-1:], *written]
        return [SystemMessage(prompt), *build_messages(task, self.room, searches=searches)]


def extract_answer(messages: Sequence[BaseMessage]) -> str:
    """Return the text of an agent's last message without thoughts."""
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
    """Build the agent of `role`, with `limits` for each task."""
    graph = build_react_graph(
        role.name,
        model,
        tools,
        limits=limits,
        additions=ExtraMiddleware(around_calls=middleware),
        offered=offered,
    )
    has_tools = bool(tools) or any(isinstance(one, DynamicTools) for one in offered)
    counts_client_tools = any(isinstance(one, ClientTools) for one in offered)
    names = frozenset(tool.name for tool in tools)
    return ReactAgent(role, has_tools, graph, model, names, counts_client_tools)


def build_react_graph(
    name: str,
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    limits: StepLimits,
    additions: ExtraMiddleware,
    offered: Sequence[AgentMiddleware[Any, Any]] = (),
) -> AgentGraph:
    """Build the loop of thinking, acting and observing; it must run within `step_context`.

    `offered` middleware decides which tools a request has. It is outermost, so that all other middleware sees
    the same tools. The order counts: the first middleware is the outermost.
    """
    inside = (*additions.around_answers, *additions.around_calls)
    adding = [one for one in inside if isinstance(one, PictureAdding)]
    stack: list[AgentMiddleware[Any, Any]] = [
        *offered,
        ToolNameRecorder(),
        # Around everything that may end the step, to add the results so far to the reason.
        PartialWork(),
        # Before a model call is counted: after a terminal tool there is no further call.
        TerminalTools(),
        # Outside of everything that changes or counts a prompt: what it adds stays in the conversation.
        PassedOnMessages(),
        # Inside of it, so that a message of the user is not taken for a reason to check twice. Outside of
        # the limit: what it asks counts as a model call.
        additions.unfinished or UnfinishedAnswers(name),
        EmptyAnswers(),
        RejectedCalls(),
        # Before the conversation is compacted, which would be useless at the limit.
        ModelCallLimit(limits.model_calls),
        # Before texts that are added to a single prompt, which would otherwise become part of a summary.
        ContextCompaction(model, tools, adding),
        # After the compaction, so that its nudge is the last message.
        StuckDetection(),
        # Before the results are fenced, which makes them unreadable for code.
        RepeatedHits(),
        # The last to change the messages, except for the conversion for endpoints without tool calling.
        UntrustedDataFencing(),
        *additions.around_answers,
        # Around everything that parses the answer: an answer that broke off is requested again.
        ModelRetryMiddleware(max_retries=2, retry_on=broke_off, on_failure="error", initial_delay=0.5),
        # Around the parsing of calls in text, to register those, too. A call waits for its turn first.
        CallOrder(),
        ToolPreparation(),
        additions.text_tools,
        # Before a call is recorded or approved: a call beyond the limit is neither.
        ToolCallLimit(limits.tool_calls),
        # Before `RecordedToolCalls`: a waiting call is not recorded as begun.
        ConcurrencyLimit(),
        # Around everything that changes results, so that they are recorded as the model reads them.
        RecordedToolCalls(),
        *additions.around_calls,
        # Around the conversion of failures to messages, because it adds the schema to some of them.
        ArgumentErrors(),
        # Around everything that may raise in a call, including timeouts, so that the model reads the reason.
        build_failure_middleware(),
        # Directly around the call, so that all outer middleware sees the extract.
        WebExtracts(model),
        # Innermost, so that only the tool's own work is timed, not the waiting for other calls or for the
        # user.
        ToolTimeouts(limits.tool_seconds),
        # In the place of LangGraph's own answer: outer middleware must see each call, to keep their order.
        UnknownTools(),
    ]
    return create_agent(model, list(tools), middleware=chain_middleware(stack), name=name)
