"""LangGraph's raw events in, ours out: the one translation, whoever streams the graph."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from maniple.errors import ManipleError, failure_words
from maniple.events.base import CUSTOM_EVENT_TYPES, Event
from maniple.events.conversation import as_chat_message
from maniple.events.lane import Lane
from maniple.events.model import (
    ErrorOccurred,
    PlanChanged,
    PlanStepView,
    RunStarted,
    RunStatusChanged,
    SessionState,
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.pauses import interrupted
from maniple.events.raw import agent_of, is_node, plain, result, update_of
from maniple.events.run_view import StreamState
from maniple.events.sequence import Sequencer
from maniple.text import whole
from maniple.types import BROWSER_STEP, TOOL_OUTPUT, UNSPOKEN, RunStatus

SILENT = frozenset({"supervisor"})


class Translator:
    """Translates the raw events of one run; feed it each, then close it once.

    `run_id` becomes the workflow's id. `messages` are the conversation that the run was given; what the
    team remembers beyond it is sent, too, once a node of the outermost graph has shown its state. `stream` is
    the state of the stream so far, when the run continues after a crash.
    """

    def __init__(
        self, run_id: str, thread_id: str, messages: Sequence[BaseMessage], stream: StreamState | None = None
    ) -> None:
        self._stream = stream = stream or StreamState()
        self._run_id = run_id
        self._thread_id = thread_id
        self._input = [as_chat_message(message) for message in messages]
        self._messages = list(messages)
        self.knows_conversation = False
        """Whether the messages come from the state of the graph."""
        self._sequencer = Sequencer()
        self._workflow_started = stream.has_workflow_started
        self._plan: PlanChanged | None = stream.plan
        self._running: dict[str, str] = {}
        self._agent_ids: Counter[str] = Counter(stream.turn_counts)
        self._clock: dict[str, float] = {}
        self._pauses: dict[str, Any] = {}

    def open(self) -> Iterator[Event]:
        """Yield the first event of every stream, or the ends of what a crash cut off."""
        if self._stream.has_started:
            yield from self._stream.closing_events()
        else:
            yield RunStarted(run_id=self._run_id, thread_id=self._thread_id)

    def feed(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events that `raw` stands for: none, one or several."""
        kind = raw["event"]
        if kind == "on_chain_stream":
            self._note_pauses(raw["data"].get("chunk"))
        key, agent = agent_of(raw.get("metadata") or {})
        if agent is None:
            return
        key = self._owner(key, agent)
        if kind == "on_chain_start" and is_node(raw, key, agent):
            yield from self._node_started(raw, key, agent)
        elif kind == "on_chain_end" and is_node(raw, key, agent):
            yield from self._node_ended(raw, key, agent)
        elif kind.startswith("on_chat_model"):
            yield from self._model(raw, key, agent)
        elif kind.startswith("on_tool"):
            yield from self._tool(raw, key)
        elif kind == "on_custom_event":
            yield from self._told_by_a_tool(raw, key)

    def close(self, status: RunStatus, error: Exception | None = None) -> Iterator[Event]:
        """End the run: close what is open, say what went wrong, hand back the conversation.

        A run that completed with a pause is `interrupted`, and tells what it waits for.
        """
        agent = self._sequencer.speaking() or next(reversed(self._running.values()), None)
        yield from self._sequencer.close_all()
        if self._stream.status is None:
            yield from self._outcome(status, error, agent)
        told = [as_chat_message(message) for message in self._messages]
        if self._workflow_started and not self._stream.has_workflow_ended:
            yield WorkflowEnded(workflow_id=self._run_id, messages=told)
        yield SessionState(messages=told)

    def _outcome(self, status: RunStatus, error: Exception | None, agent: str | None) -> Iterator[Event]:
        if status == "completed" and self._pauses:
            status = "interrupted"
        if status != "completed":
            yield from self._start_workflow()
        if status == "interrupted":
            for interrupt_id, value in self._pauses.items():
                yield interrupted(interrupt_id, value)
        if error is not None:
            yield _failed(error, agent)
        yield RunStatusChanged(status=status)

    def recall(self, messages: Sequence[BaseMessage]) -> None:
        """Take `messages`, of the graph's state, for the whole conversation so far."""
        self._messages, self.knows_conversation = list(messages), True

    def _note_pauses(self, chunk: Any) -> None:
        if isinstance(chunk, Mapping):
            for pause in chunk.get("__interrupt__") or ():
                self._pauses[pause.id] = pause.value

    def _owner(self, key: str, agent: str) -> str:
        """Return the running node that `key` lies in: an agent may be a graph with a node of its own name."""
        nodes = (one for one, name in self._running.items() if name == agent)
        return next((one for one in nodes if key.startswith(f"{one}|")), key)

    def _start_workflow(self) -> Iterator[Event]:
        if not self._workflow_started:
            self._workflow_started = True
            yield WorkflowStarted(workflow_id=self._run_id, input=self._input)

    def _node_started(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running[key] = agent
        state = raw["data"].get("input")
        # Inside a parent graph a node sees what the parent passed on, which may be less than was said.
        if "|" not in key and isinstance(state, Mapping) and state.get("messages"):
            self.recall(state["messages"])
        if agent in SILENT:
            return
        lane = Lane(agent, self._agent_id(agent, raw["metadata"].get("langgraph_step", 0)), self._run_id)
        before = () if agent == "coordinator" else self._start_workflow()
        yield from self._sequencer.open(key, lane, before)

    def _agent_id(self, agent: str, step: int) -> str:
        agent_id = f"{self._run_id}_{agent}_{step}"
        self._agent_ids[agent_id] += 1
        # Two teams that a parent runs at once are at the same step.
        again = self._agent_ids[agent_id]
        return agent_id if again == 1 else f"{agent_id}_{again}"

    def _node_ended(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running.pop(key, None)
        update = update_of(raw["data"].get("output"))
        said: list[BaseMessage] = list(update.get("messages") or ())
        self._messages += said
        lane = self._sequencer.lane(key)
        if lane is not None:
            answer, message_id = (whole(said[-1].text), said[-1].id or "") if said else ("", "")
            yield from self._sequencer.close(key, lane.end(answer, message_id))
        if plan := update.get("plan"):
            event = _plan_changed(plan)
            if event != self._plan:
                self._plan = event
                yield event

    def _model(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        call, parents = raw["run_id"], raw.get("parent_ids") or ()
        kind = raw["event"].removeprefix("on_chat_model_")
        if kind == "start":
            self._clock[call] = time.monotonic()
        usage = list(self._usage(raw, agent)) if kind == "end" else []
        lane = self._sequencer.lane(key)
        # A summary that only makes room is nobody's word; a mended passage is told within the report.
        if lane is None or raw["metadata"].get("lc_source") in UNSPOKEN:
            yield from usage
            return
        if kind == "start":
            yield from self._sequencer.tell(key, lane.model_started(call, parents))
        elif kind == "stream":
            yield from self._sequencer.tell(key, _spoken(lane, call, raw["data"].get("chunk")))
        elif kind == "end":
            yield from self._sequencer.tell(key, [*lane.model_ended(call), *usage])

    def _usage(self, raw: Mapping[str, Any], agent: str) -> Iterator[Event]:
        seconds = time.monotonic() - self._clock.pop(raw["run_id"], time.monotonic())
        answer = raw["data"].get("output")
        if isinstance(answer, AIMessage):
            counted = answer.usage_metadata
            yield UsageReported(
                agent_name=agent,
                model=str(answer.response_metadata.get("model_name") or raw.get("name") or ""),
                input_tokens=counted["input_tokens"] if counted else 0,
                output_tokens=counted["output_tokens"] if counted else 0,
                seconds=round(seconds, 3),
            )

    def _tool(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        lane = self._sequencer.lane(key)
        if lane is None:
            return
        call, data = raw["run_id"], raw["data"]
        match raw["event"]:
            case "on_tool_start":
                given = data.get("input")
                arguments = plain(given if isinstance(given, dict) else {"input": given})
                started = lane.tool_started(call, raw.get("parent_ids") or (), raw["name"], arguments)
                yield from self._sequencer.tell(key, started)
            case "on_tool_end":
                yield from self._sequencer.tell(key, lane.tool_ended(call, result(data.get("output"))))
            case "on_tool_error":
                words = _failure(raw["name"], data)
                yield from self._sequencer.tell(key, lane.tool_ended(call, words))

    def _told_by_a_tool(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        lane, told = self._sequencer.lane(key), raw["data"]
        if lane is None:
            return
        match raw["name"]:
            case event if event == TOOL_OUTPUT:
                printed = lane.tool_printed(raw["run_id"], told["stream"], whole(told["text"]))
                yield from self._sequencer.tell_now(key, printed)
            case event if event == BROWSER_STEP:
                stepped = lane.browser_stepped([*(raw.get("parent_ids") or ()), raw["run_id"]], plain(told))
                yield from self._sequencer.tell(key, stepped)
            case name if event_type := CUSTOM_EVENT_TYPES.get(name):
                yield from self._sequencer.tell(key, [event_type.model_validate(plain(told))])
            case _:
                pass


async def translate(
    raw_events: AsyncIterator[Any], *, run_id: str, thread_id: str, messages: Sequence[BaseMessage]
) -> AsyncIterator[Event]:
    """Translate the `astream_events` of the team, or of any graph that embeds it, until they end.

    An error of the graph is told as events and raised no further; cancellation passes.
    """
    translator = Translator(run_id, thread_id, messages)
    for event in translator.open():
        yield event
    try:
        async for raw in raw_events:
            for event in translator.feed(raw):
                yield event
    except Exception as error:  # noqa: BLE001 - the client must hear of whatever ended the run
        for event in translator.close("failed", error):
            yield event
        return
    for event in translator.close("completed"):
        yield event


def _spoken(lane: Lane, call: str, chunk: Any) -> Iterator[Event]:
    if not isinstance(chunk, AIMessageChunk):
        return
    message_id = chunk.id or call
    thought = chunk.additional_kwargs.get("reasoning_content") or ""
    yield from lane.reasoning(call, message_id, whole(thought))
    yield from lane.text(call, message_id, whole(chunk.text))


def _plan_changed(plan: Mapping[str, Any]) -> PlanChanged:
    return PlanChanged(title=plan["title"], steps=[_step_view(step) for step in plan["steps"]])


def _step_view(step: Mapping[str, Any]) -> PlanStepView:
    known = {name: step[name] for name in PlanStepView.model_fields if name != "reason"}
    # A checkpoint of an older version has no reasons.
    reason = step.get("reason") if step["status"] in ("failed", "blocked", "skipped") else None
    return PlanStepView(**known, reason=whole(reason) or None)


def _failed(error: Exception, agent: str | None) -> ErrorOccurred:
    known = isinstance(error, ManipleError)
    message = str(error) if known else f"Something went wrong inside maniple ({failure_words(error)})."
    code = error.code if known else "internal"
    return ErrorOccurred(code=code, message=message, agent_name=agent, retryable=known and error.retryable)


def _failure(tool: str, data: Mapping[str, Any]) -> str:
    error = data.get("error")
    if isinstance(error, GraphBubbleUp):
        return "Waits for the user."
    if isinstance(error, ValidationError):
        from langgraph.prebuilt.tool_node import ToolInvocationError

        # The words in which LangGraph tells the model.
        return whole(ToolInvocationError(tool, error, data.get("input") or {}, error.errors()).message)
    return whole(failure_words(error)) if error else "The tool failed."
