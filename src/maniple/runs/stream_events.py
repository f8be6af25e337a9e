"""The team in the typed stream of LangGraph, `astream_events(version="v3")`, at any depth of a graph.

`open_team` makes its team report here. The team then sends its events as parts of the stream mode `custom`,
and `TeamTransformer` sorts them into the projections of `run.extensions`.
Source: `langgraph.stream` and https://docs.langchain.com/oss/python/langgraph/streaming
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.stream import ProtocolEvent, StreamChannel, StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - it has types

from maniple.errors import ManipleError
from maniple.events import ANSWERING_AGENTS, Event, RunView
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    ErrorOccurred,
    MessageChunk,
    MessageReplaced,
    PlanChanged,
    RunGap,
    RunInterrupted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from maniple.events.translator import Translator
from maniple.evidence.record import Source
from maniple.graph import Team
from maniple.graph.builder import Steps
from maniple.graph.state import FAILED_MARK
from maniple.langgraph_internals import INTERRUPTS, make_custom_part, send_custom_part
from maniple.types import PRIVATE_CHANNEL, RunStatus, is_mapping


@dataclass(frozen=True, slots=True)
class TeamResult:
    """How an invocation of the team ended. `status` is `interrupted` while it waits for an answer."""

    status: RunStatus
    answer: str
    """The report or the reply, as Markdown; "" without one."""
    gaps: Sequence[RunGap]
    """The steps whose results the answer lacks, and why."""
    error: ErrorOccurred | None
    """The error that ended it, with its code."""
    questions: Sequence[RunInterrupted]
    """What it waits for."""
    sources: Sequence[Source]
    """What the thread has found or read, by the numbers that the report cites."""
    usage: Mapping[str, Any]
    """What it has used: calls, tokens, seconds and cost; {} if the graph has not ended by itself."""


class TeamTransformer(StreamTransformer):
    """Projects the events of each team in a graph: typed channels in `run.extensions`.

    - `team_events`: every `Event`, in the order in which it happens, marked with its `turn`.
    - `team_plan`: `PlanChanged`, the whole plan with the status of each step, and its drafts.
    - `team_members`: `AgentStarted` and `AgentEnded`.
    - `team_tools`: `ToolCalled`, `ToolOutput` and `ToolReturned`.
    - `team_answer`: the text of the report or reply as `MessageChunk`, and `MessageReplaced`.
    - `team_results`: one `TeamResult` for each invocation of a team.

    A channel that nobody reads stores nothing. In the main log the events are of the method `custom`.
    """

    required_stream_modes = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._events = StreamChannel[Event]()
        self._plan = StreamChannel[PlanChanged]()
        self._members = StreamChannel[AgentStarted | AgentEnded]()
        self._tools = StreamChannel[ToolCalled | ToolOutput | ToolReturned]()
        self._answer = StreamChannel[MessageChunk | MessageReplaced]()
        self._results = StreamChannel[TeamResult]()
        self._answering = set[str]()
        """The ids of the turns at work that write the answer."""

    def init(self) -> dict[str, Any]:
        """Return the channels by their names."""
        return {
            "team_events": self._events,
            "team_plan": self._plan,
            "team_members": self._members,
            "team_tools": self._tools,
            "team_answer": self._answer,
            "team_results": self._results,
        }

    def process(self, event: ProtocolEvent) -> bool:
        """Pass what a team has sent on to its channels; every event stays in the main log."""
        if event["method"] == "custom":
            item: object = event["params"]["data"]
            if isinstance(item, Event):
                self._events.push(item)
                self._project(item)
            elif isinstance(item, TeamResult):
                self._results.push(item)
        return True

    def _project(self, event: Event) -> None:
        match event:
            case PlanChanged():
                self._plan.push(event)
            case AgentStarted() | AgentEnded():
                self._members.push(event)
                if isinstance(event, AgentStarted) and event.agent_name in ANSWERING_AGENTS:
                    self._answering.add(event.agent_id)
                elif isinstance(event, AgentEnded):
                    self._answering.discard(event.agent_id)
            case ToolCalled() | ToolOutput() | ToolReturned():
                self._tools.push(event)
            case MessageChunk() if event.turn_id in self._answering and event.delta.content:
                self._answer.push(event)
            case MessageReplaced() if event.turn_id in self._answering:
                self._answer.push(event)
            case _:
                pass


def report_stream_events(team: Team) -> None:
    """Let a team report in the streams of version 3, its own and those of graphs around it.

    Its own streams have the projections of `TeamTransformer`; a graph around it is given it as one of its
    `transformers`.
    """
    team.observe_steps = _observe_steps
    team.stream_transformers = (*team.stream_transformers, TeamTransformer)


class _StepsRunnable(Runnable[None, Any]):
    """The steps of a graph as what `astream_events` of version 2 can observe."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def invoke(self, input: None, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        raise NotImplementedError("The steps of a graph can only be streamed.")

    async def astream(
        self, input: None, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any]:
        async with aclosing(self._steps(config or {})) as steps:
            async for step in steps:
                yield step


async def _observe_steps(
    team: Team, steps: Steps, given: Any, config: RunnableConfig, *, is_nested: bool
) -> AsyncGenerator[Any]:
    """Yield the parts of a team's stream; in between, the team's events are parts, too.

    A team inside of another graph sends its events to that graph's stream instead.
    """
    async with aclosing(_watch(_Invocation(team, given, config), steps)) as parts:
        async for item, is_step in parts:
            if is_step:
                yield item
            elif is_nested:
                send_custom_part(config.get("configurable", {}), item)
            else:
                yield make_custom_part(item)


async def _watch(invocation: "_Invocation", steps: Steps) -> AsyncGenerator[tuple[Any, bool]]:
    """Yield the steps of a graph, the events in between and the result, each with whether it is a step.

    Raises what the graph raises, after the events of its end.
    """
    failure: Exception | None = None
    for event in invocation.open():
        yield event, False
    raw_events = _StepsRunnable(steps).astream_events(None, invocation.config, version="v2")
    async with aclosing(cast("AsyncGenerator[Mapping[str, Any]]", raw_events)) as stream:
        try:
            async for raw in stream:
                for event in invocation.feed(raw):
                    yield event, False
                if invocation.is_own(raw) and raw["event"] == "on_chain_stream":
                    yield raw["data"]["chunk"], True
        except Exception as error:  # noqa: BLE001 - it is raised again below
            failure = error
    for item in await invocation.close(failure):
        yield item, False
    if failure is not None:
        raise failure


@dataclass(slots=True)
class _Invocation:
    """One invocation of a team: its translation, and what its result needs."""

    team: Team
    given: Any
    config: RunnableConfig
    view: RunView = field(default_factory=RunView)
    _run_id: str = ""
    """The id of the run in the graph's state, by which its sources are found."""
    _callback_id: str = ""
    """LangChain's id of the team's own run."""
    _outcome: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _last: BaseMessage | None = None
    _translator: Translator = field(init=False)

    def __post_init__(self) -> None:
        thread_id = str(self.config.get("configurable", {}).get("thread_id") or "")
        self._translator = Translator(str(uuid4()), thread_id, _messages_of(self.given))

    def open(self) -> Iterator[Event]:
        return self._viewed(self._translator.open())

    def is_own(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a raw event is about the team's graph as a whole."""
        return raw["run_id"] == self._callback_id

    def feed(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events for one raw event."""
        self._callback_id = self._callback_id or raw["run_id"]  # the first event is the start of the graph
        if self.is_own(raw):
            self._read_own(raw)
            return
        if raw["event"] == "on_chain_end":
            self._run_id = _run_id_of(raw["data"].get("output")) or self._run_id
        yield from self._viewed(self._translator.feed(raw))

    def pause(self, interrupts: Sequence[Any]) -> None:
        """Take what the graph waits for."""
        raw = {"event": "on_chain_stream", "data": {"chunk": {INTERRUPTS: interrupts}}}
        list(self._translator.feed(raw))  # it has no events yet

    async def close(self, failure: Exception | None) -> list[Event | TeamResult]:
        """Return the events of the end, and the result before the last one."""
        status: RunStatus = self._outcome.get("status") or "completed"
        error = failure
        if isinstance(failure, GraphInterrupt):  # of a graph inside of another one
            self.pause(failure.args[0])
            error = None
        elif failure is not None:
            status = "failed"
        elif status == "failed":
            error = self._undelivered()
        events = [*self._viewed(self._translator.close(status, error))]
        return [*events[:-1], await self._result(), *events[-1:]]

    def _viewed(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self.view.apply(event)
            yield event

    def _read_own(self, raw: Mapping[str, Any]) -> None:
        if raw["event"] == "on_chain_stream":
            chunk = raw["data"].get("chunk")
            if is_mapping(chunk) and chunk.get("interrupts"):
                self.pause(chunk["interrupts"])
        elif raw["event"] == "on_chain_end":
            output = raw["data"].get("output")
            messages: Sequence[BaseMessage] = output.get("messages") or () if is_mapping(output) else ()
            self._last = messages[-1] if messages else None
            if self._last is not None and "gaps" in self._last.response_metadata:
                self._outcome = self._last.response_metadata

    def _undelivered(self) -> ManipleError:
        """Return the error that left the graph without an answer, although it ended by itself."""
        last = self._last
        error = ManipleError(last.text if last is not None else "No answer could be written.")
        error.code = self._outcome.get("error_code") or error.code
        error.has_answer = last is not None and not last.additional_kwargs.get(FAILED_MARK)
        return error

    async def _result(self) -> TeamResult:
        view = self.view
        return TeamResult(
            status=view.status or "completed",
            answer=view.answer if view.has_answer else "",
            gaps=view.gaps,
            error=view.failure,
            questions=view.pauses,
            sources=await self.team.scopes.sources(self._run_id),
            usage=self._outcome.get("usage", {}),
        )


def _messages_of(given: Any) -> Sequence[BaseMessage]:
    """Return the conversation that a graph is invoked with; none if it continues."""
    messages: Any = given.get("messages") if is_mapping(given) else getattr(given, "messages", None)
    if not messages:
        return ()
    is_one = isinstance(messages, BaseMessage | str)
    return convert_to_messages([messages] if is_one else messages)


def _run_id_of(output: Any) -> str:
    """Return the id of the run that a node has written to the state; "" for none."""
    update = getattr(output, "update", None)
    private = update.get(PRIVATE_CHANNEL) if is_mapping(update) else None
    return str(private.get("run_id") or "") if is_mapping(private) else ""
