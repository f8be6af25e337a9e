"""The translation of LangGraph's raw events (`astream_events`, version 2) into the events of a run."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, Interrupt
from pydantic import ValidationError

from maniple.agents.budget import count_cached
from maniple.agents.task import (
    explain_failure,
    explain_partial,
    find_gaps,
    is_partial,
    is_raw_failure,
    place_of_replacement,
)
from maniple.errors import ManipleError, describe_error
from maniple.events.base import CUSTOM_EVENT_TYPES, Event
from maniple.events.conversation import as_chat_message
from maniple.events.model import (
    ErrorOccurred,
    PlanChanged,
    PlanStepView,
    RunGap,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    SessionState,
    StepInterrupted,
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.run_view import StreamState
from maniple.events.turns import BUFFERED_AGENTS, AgentTurn, order_turns
from maniple.text import fix_surrogates
from maniple.tools.questions import interrupt_of
from maniple.types import (
    AGENT_MARK,
    ANSWER_DRAFT,
    BROWSER_STEP,
    LEAD_DECISION,
    MODEL_UNREACHABLE,
    PLAN_EVENT,
    PRIVATE_CHANNEL,
    STEP_INTERRUPT,
    TOOL_OUTPUT,
    UNSPOKEN,
    RunStatus,
)

SILENT = frozenset({"supervisor"})


class Translator:
    """Translates the raw events of one run; feed it each, then close it once.

    The events come in the order in which they happen: those of concurrent turns interleave, and each is
    marked with its turn.

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
        self._turns: dict[str, AgentTurn] = {}
        self._not_begun: dict[str, tuple[str, int, int]] = {}
        """Agent, LangGraph's step and the plan's step of turns that wait for the results that they need."""
        self._workflow_started = stream.has_workflow_started
        self._plan: PlanChanged | None = stream.plan
        self._plan_data: Mapping[str, Any] = stream.plan.data() if stream.plan else {}
        self._running: dict[str, str] = {}
        self._agent_ids = set(stream.turn_ids)
        self._clock: dict[str, float] = {}
        self._pauses: dict[str, Any] = {}
        self._asked: dict[str, str] = {}
        """The ids of the questions that steps have asked, by the ids of their interrupts."""
        self._left: list[RunGap] = []

    def open(self) -> Iterator[Event]:
        """Yield the first event of a stream, or the events that close what a crash left open."""
        if self._stream.has_started:
            yield from self._stream.closing_events()
        else:
            yield RunStarted(run_id=self._run_id, thread_id=self._thread_id)

    def resume(self) -> None:
        """Forget what the graph waited for: it is executed again."""
        self._pauses = {}

    def feed(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events for one raw event: none, one or several."""
        kind = raw["event"]
        if kind == "on_chain_stream":
            self._note_pauses(raw["data"].get("chunk"))
        key, agent = _agent_of(raw.get("metadata") or {})
        if agent is None:
            return
        key = self._owner(key, agent)
        if kind == "on_chain_start" and _is_node(raw, key, agent):
            yield from self._node_started(raw, key, agent)
        elif kind == "on_chain_end" and _is_node(raw, key, agent):
            yield from self._node_ended(raw, key, agent)
        elif kind.startswith("on_chat_model"):
            yield from self._model(raw, key, agent)
        elif kind.startswith("on_tool"):
            yield from self._tool(raw, key)
        elif kind == "on_custom_event":
            yield from self._custom_event(raw, key)

    def close(self, status: RunStatus, error: Exception | None = None) -> Iterator[Event]:
        """End the run: close what is open, send the error and the conversation.

        A run that completed with a pause is `interrupted`, and its pauses are sent.
        """
        first = next(iter(self._turns.values()), None)
        agent = first.name if first else next(reversed(self._running.values()), None)
        for key, turn in list(self._turns.items()):
            yield from self._end_turn(key, turn.end())
        if self._stream.status is None:
            yield from self._outcome(status, error, agent)
        messages = [as_chat_message(message) for message in self._messages]
        if self._workflow_started and not self._stream.has_workflow_ended:
            yield WorkflowEnded(workflow_id=self._run_id, messages=messages)
        yield SessionState(messages=messages)

    def _outcome(self, status: RunStatus, error: Exception | None, agent: str | None) -> Iterator[Event]:
        if status == "completed" and self._pauses:
            status = "interrupted"
        if status != "completed":
            yield from self._start_workflow()
        if status == "interrupted":
            for interrupt_id, value in self._pauses.items():
                yield interrupt_event(self._asked.get(interrupt_id, interrupt_id), value)
        if error is not None:
            yield _failed(error, agent)
        has_answer = status in ("completed", "budget_exhausted")
        has_answer = has_answer or (isinstance(error, ManipleError) and error.has_answer)
        gaps = _list_gaps(self._plan_data) if has_answer else self._left
        yield RunStatusChanged(status=status, gaps=gaps or None)

    def recall(self, messages: Sequence[BaseMessage]) -> None:
        """Set the conversation so far to `messages`, from the graph's state."""
        self._messages, self.knows_conversation = list(messages), True

    def leave_gaps(self, plan: Mapping[str, Any]) -> None:
        """Report, with the end of a cancelled retry, the steps of `plan` that are still not done."""
        self._left = _list_gaps(plan, with_open=True)

    def _note_pauses(self, chunk: Any) -> None:
        if isinstance(chunk, Mapping):
            pauses: Sequence[Interrupt] = cast("Mapping[str, Any]", chunk).get("__interrupt__") or ()
            self._pauses |= {pause.id: pause.value for pause in pauses}

    def _owner(self, key: str, agent: str) -> str:
        """Return the running node that contains `key`: an agent may be a graph with a node of its name."""
        nodes = (one for one, name in self._running.items() if name == agent)
        return next((one for one in nodes if key.startswith(f"{one}|")), key)

    def _start_workflow(self) -> Iterator[Event]:
        if not self._workflow_started:
            self._workflow_started = True
            yield WorkflowStarted(workflow_id=self._run_id, input=self._input)

    def _node_started(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running[key] = agent
        state = raw["data"].get("input")
        # Inside a parent graph a node sees what the parent passed on: it may be only a part.
        if "|" not in key and isinstance(state, Mapping):
            messages: Sequence[BaseMessage] = cast("Mapping[str, Any]", state).get("messages") or ()
            if messages:
                self.recall(messages)
        if agent in SILENT:
            return
        if (stale := self._turns.get(key)) is not None:
            yield from self._end_turn(key, stale.end())
        step, private = raw["metadata"].get("langgraph_step", 0), _private_of(state)
        if step_id := private.get("step"):
            self._not_begun[key] = agent, step, step_id
            return
        yield from self._open_turn(key, agent, step, _current_step(private, agent))

    def _open_turn(self, key: str, agent: str, step: int, step_id: int | None) -> Iterator[Event]:
        if agent != "coordinator":
            yield from self._start_workflow()
        turn = self._turns[key] = AgentTurn(agent, self._agent_id(agent, step), self._run_id, step_id)
        yield from _marked(turn, turn.start())

    def _begin(self, key: str) -> Iterator[Event]:
        """Open a turn that has waited: it is at work now."""
        if (waiting := self._not_begun.pop(key, None)) is not None:
            yield from self._open_turn(key, *waiting)

    def _end_turn(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        yield from _marked(self._turns.pop(key), events)

    def _agent_id(self, agent: str, step: int) -> str:
        first = agent_id = f"{self._run_id}_{agent}_{step}"
        again = 1
        # Concurrent steps, and two teams that a parent runs in parallel, are at the same step.
        while agent_id in self._agent_ids:
            again += 1
            agent_id = f"{first}_{again}"
        self._agent_ids.add(agent_id)
        return agent_id

    def _node_ended(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running.pop(key, None)
        update = _update_of(raw["data"].get("output"))
        known = {message.id for message in self._messages if message.id}
        # The end of an embedded run adds its outcome to the last message.
        new = [one for one in _messages_of(update) if one.id not in known]
        self._messages += new
        if new:
            yield from self._begin(key)
        self._not_begun.pop(key, None)
        if (turn := self._turns.get(key)) is not None:
            answer, message_id = (fix_surrogates(new[-1].text), new[-1].id or "") if new else ("", "")
            yield from self._end_turn(key, turn.end(answer, message_id))
        private: Mapping[str, Any] = update.get(PRIVATE_CHANNEL) or {}
        if plan := private.get("plan"):
            yield from self._plan_stands(plan)

    def _plan_stands(self, plan: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the plan if clients do not have it so."""
        self._plan_data = plan
        event = _plan_changed(plan)
        if event != self._plan:
            self._plan = event
            yield event

    def _model(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        call, parents = raw["run_id"], raw.get("parent_ids") or ()
        kind = raw["event"].removeprefix("on_chat_model_")
        if kind == "start":
            self._clock[call] = time.monotonic()
        # Lazy: the usage event is made after the end of the call, and has its time.
        usage = self._usage(raw, agent) if kind == "end" else ()
        yield from self._begin(key)
        turn = self._turns.get(key)
        if turn is None:
            yield from usage
        # A summary for a shorter context is not shown; a repaired passage is sent within the report.
        elif raw["metadata"].get("lc_source") in UNSPOKEN:
            yield from _marked(turn, usage)
        elif kind == "start":
            yield from _marked(turn, turn.model_started(call, parents))
        elif kind == "stream":
            yield from _marked(turn, _text_events(turn, call, raw["data"].get("chunk")))
        elif kind == "end":
            yield from _marked(turn, turn.model_ended(call))
            yield from _marked(turn, usage)

    def _usage(self, raw: Mapping[str, Any], agent: str) -> Iterator[Event]:
        seconds = time.monotonic() - self._clock.pop(raw["run_id"], time.monotonic())
        answer = raw["data"].get("output")
        if isinstance(answer, AIMessage):
            yield report_usage(agent, answer, seconds, model=raw.get("name"))

    def _tool(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        yield from self._begin(key)
        turn = self._turns.get(key)
        if turn is None:
            return
        call, data = raw["run_id"], raw["data"]
        match raw["event"]:
            case "on_tool_start":
                given = data.get("input")
                arguments = _plain(_as_mapping(given, "input"))
                started = turn.tool_started(call, raw.get("parent_ids") or (), raw["name"], arguments)
                yield from _marked(turn, started)
            case "on_tool_end":
                yield from _marked(turn, turn.tool_ended(call, _result_text(data.get("output"))))
            case "on_tool_error":
                message = _failure(raw["name"], data)
                yield from _marked(turn, turn.tool_ended(call, message))
            case _:
                pass

    def _custom_event(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        name, data = raw["name"], raw["data"]
        if name == PLAN_EVENT:
            yield from self._wave_changed(raw, key)
            return
        yield from self._begin(key)
        turn = self._turns.get(key)
        if turn is not None:
            yield from self._turn_event(turn, raw)
        elif name in (LEAD_DECISION, MODEL_UNREACHABLE):  # the lead is the supervisor, which has no turn
            yield CUSTOM_EVENT_TYPES[name].model_validate(_plain(data))

    def _wave_changed(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        """Yield the current plan, and the turn's beginning or end for an attempt of a concurrent step."""
        data = raw["data"]
        if data["step"] and (ended := self._turns.get(key)) is not None:
            yield from self._end_turn(key, ended.end())
        if data["begins"] and (agent := self._running.get(key)):
            self._not_begun.pop(key, None)
            step = raw["metadata"].get("langgraph_step", 0)
            yield from self._open_turn(key, agent, step, data["step"])
        yield from self._plan_stands(data["plan"])

    def _turn_event(self, turn: AgentTurn, raw: Mapping[str, Any]) -> Iterator[Event]:
        data = raw["data"]
        match raw["name"]:
            case event if event == TOOL_OUTPUT:
                printed = turn.tool_printed(raw["run_id"], data["stream"], fix_surrogates(data["text"]))
                yield from _marked(turn, printed)
            case event if event == ANSWER_DRAFT:
                text = fix_surrogates(data["text"])
                yield from _marked(turn, turn.draft_added(data["message_id"], text))
                if plan := data.get("plan"):
                    draft = _plan_changed(plan).model_copy(update={"draft": True})
                    yield from _marked(turn, [draft])
            case event if event == BROWSER_STEP:
                stepped = turn.browser_stepped([*(raw.get("parent_ids") or ()), raw["run_id"]], _plain(data))
                yield from _marked(turn, stepped)
            case event if event == STEP_INTERRUPT:
                self._asked[interrupt_of(data["interrupt_id"])] = data["interrupt_id"]
                yield from _marked(turn, [_step_interrupt_event(data)])
            case name if event_type := CUSTOM_EVENT_TYPES.get(name):
                yield from _marked(turn, [event_type.model_validate(_plain(data))])
            case _:
                pass


def translate(
    raw_events: AsyncIterator[Any],
    *,
    run_id: str,
    thread_id: str,
    messages: Sequence[BaseMessage],
    is_live: bool = False,
) -> AsyncIterator[Event]:
    """Translate the `astream_events` of the team, or of any graph that embeds it, until they end.

    The turns of concurrent agents are emitted one after another; with `is_live` as they happen, each event
    marked with its `turn`. An error of the graph becomes events and is not raised; a cancellation is.
    """
    events = _translate(raw_events, Translator(run_id, thread_id, messages))
    return events if is_live else order_turns(events)


async def _translate(raw_events: AsyncIterator[Any], translator: Translator) -> AsyncIterator[Event]:
    for event in translator.open():
        yield event
    try:
        async for raw in raw_events:
            for event in translator.feed(raw):
                yield event
    except Exception as error:  # noqa: BLE001 - the stream must end with every error
        for event in translator.close("failed", error):
            yield event
        return
    for event in translator.close("completed"):
        yield event


def report_usage(agent: str, answer: AIMessage, seconds: float, *, model: str | None = None) -> UsageReported:
    """Return the event for the answer of a model call; `model` is its name where the answer has none."""
    counted = answer.usage_metadata
    return UsageReported(
        agent_name=agent,
        model=str(answer.response_metadata.get("model_name") or model or ""),
        input_tokens=counted["input_tokens"] if counted else 0,
        output_tokens=counted["output_tokens"] if counted else 0,
        seconds=round(seconds, 3),
        cached_tokens=count_cached(counted),
    )


def _marked(turn: AgentTurn, events: Iterable[Event]) -> Iterator[Event]:
    """Mark the events with their turn."""
    for event in events:
        yield event.in_turn(turn.mark)


def _private_of(state: Any) -> Mapping[str, Any]:
    """Return the private channel of the state that a node was given; {} if it was given none."""
    if not isinstance(state, Mapping):
        return {}
    private = cast("Mapping[str, Any]", state).get(PRIVATE_CHANNEL)
    return cast("Mapping[str, Any]", private) if isinstance(private, Mapping) else {}


def _current_step(private: Mapping[str, Any], agent: str) -> int | None:
    """Return the step of the plan that an agent works on; None for the agents that have none."""
    plan: Mapping[str, Any] = private.get("plan") or {}
    steps: Sequence[Mapping[str, Any]] = () if agent in BUFFERED_AGENTS else plan.get("steps", ())
    mine = (one for one in steps if one["agent_name"] == agent and one["status"] == "in_progress")
    return next((one["id"] for one in mine), None)


def _text_events(turn: AgentTurn, call: str, chunk: Any) -> Iterator[Event]:
    if not isinstance(chunk, AIMessageChunk):
        return
    message_id = chunk.id or call
    thought = chunk.additional_kwargs.get("reasoning_content") or ""
    yield from turn.reasoning(call, message_id, fix_surrogates(thought))
    yield from turn.text(call, message_id, fix_surrogates(chunk.text))


def _plan_changed(plan: Mapping[str, Any]) -> PlanChanged:
    return PlanChanged(title=plan["title"], steps=[_step_view(step, plan) for step in plan["steps"]])


def _messages_of(update: Mapping[str, Any]) -> list[BaseMessage]:
    return list(update.get("messages") or ())


def _list_gaps(plan: Mapping[str, Any], *, with_open: bool = False) -> list[RunGap]:
    return [RunGap(step=step, reason=reason) for step, reason in find_gaps(plan, with_open=with_open)]


def _step_view(step: Mapping[str, Any], plan: Mapping[str, Any]) -> PlanStepView:
    known = {name: step[name] for name in ("id", "agent_name", "title", "description", "status")}
    # A checkpoint of an older version has no reasons.
    reason = step.get("reason") if step["status"] in ("failed", "blocked", "skipped") else None
    reason, details, repeats = fix_surrogates(reason or ""), None, step.get("repeats") or None
    if is_raw_failure(reason):
        reason, details = explain_failure(reason), reason
    if is_partial(step):
        reason = explain_partial(step)
    if place := place_of_replacement(plan, step):
        how = "gets what is missing" if is_partial(step) else "does it instead"
        reason = f"Step {place} {how}. {reason}".strip()
    return PlanStepView(**known, reason=reason or None, details=details, repeats=repeats)


def _failed(error: Exception, agent: str | None) -> ErrorOccurred:
    known = isinstance(error, ManipleError)
    agent = (error.agent_name if known else "") or agent
    message = str(error) if known else f"Something went wrong inside maniple ({describe_error(error)})."
    code = error.code if known else "internal"
    return ErrorOccurred(code=code, message=message, agent_name=agent, retryable=known and error.retryable)


def _failure(tool: str, data: Mapping[str, Any]) -> str:
    error = data.get("error")
    if isinstance(error, GraphBubbleUp):
        return "Waits for the user."
    if isinstance(error, ValidationError):
        from langgraph.prebuilt.tool_node import ToolInvocationError

        # The message that LangGraph gives to the model.
        return fix_surrogates(
            ToolInvocationError(tool, error, data.get("input") or {}, error.errors()).message
        )
    return fix_surrogates(describe_error(error)) if error else "The tool failed."


def _agent_of(metadata: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the agent that an event belongs to, and the checkpoint namespace up to its node.

    Any segment of the namespace may be the agent's; the mark keeps a parent's node of the same name apart.
    """
    agent = metadata.get(AGENT_MARK)
    if not isinstance(agent, str):
        return "", None
    segments = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    for length in range(len(segments), 0, -1):
        if segments[length - 1].split(":")[0] == agent:
            return "|".join(segments[:length]), agent
    return "", None


def _is_node(raw: Mapping[str, Any], key: str, agent: str) -> bool:
    """Return whether an event is of the agent's node itself, and not of something inside it."""
    # A named agent starts twice: once as a node of the graph, once as its own graph.
    return (
        raw.get("name") == agent
        and raw["metadata"].get("langgraph_checkpoint_ns") == key
        and any(tag.startswith("graph:step:") for tag in raw.get("tags") or ())
    )


def _update_of(output: Any) -> Mapping[str, Any]:
    """Return the state update of a node's output."""
    outputs = cast("list[object]", output) if isinstance(output, list) else [output]
    for one in outputs:
        if isinstance(one, Command):
            update = cast("Command[Any]", one).update
            if isinstance(update, Mapping):
                return cast("Mapping[str, Any]", update)
    return cast("Mapping[str, Any]", output) if isinstance(output, Mapping) else {}


def _as_mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """Return a mapping as it is, and any other value under `name`."""
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else {name: value}


def _result_text(output: Any) -> str:
    """Return a tool's output as text."""
    if isinstance(output, ToolMessage):
        return fix_surrogates(output.text)
    return fix_surrogates(output if isinstance(output, str) else str(output))


def _plain(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `value` as JSON values. Other values become text; keys that are not text are dropped."""
    try:
        text = json.dumps(dict(value), default=str, skipkeys=True)
    except (ValueError, RecursionError):  # a cycle, or too many levels
        return {"value": fix_surrogates(str(value))}
    return fix_surrogates(json.loads(text, parse_constant=str))


_KINDS = ("plan_review", "tool_approval", "question")


def interrupt_event(interrupt_id: str, value: Any) -> RunInterrupted:
    """Return the event for a pause with a question; `value` is that of LangGraph's interrupt."""
    payload = _plain(_as_mapping(value, "value"))
    # A parent graph may pause, too, with a kind of its own.
    kind = payload.pop("kind") if payload.get("kind") in _KINDS else "question"
    return RunInterrupted(
        interrupt_id=interrupt_id, kind=kind, payload=payload, options=_options(kind, payload)
    )


def _step_interrupt_event(data: Mapping[str, Any]) -> StepInterrupted:
    asked = interrupt_event(data["interrupt_id"], data["value"])
    return StepInterrupted(**dict(asked), step_id=data["step_id"], agent_name=data["agent_name"])


def _options(kind: str, payload: Mapping[str, Any]) -> list[str]:
    """Return the kinds of accepted answers; for a question the options to choose from."""
    if kind == "plan_review":
        return ["accept", "edit", "reply"]
    if kind == "tool_approval":
        unknown = payload.get("reason") == "unknown_result"
        return ["run_again", "skip"] if unknown else ["approve", "edit", "reject"]
    options = payload.get("options")
    return [str(option) for option in cast("list[object]", options)] if isinstance(options, list) else []
