"""The translation of LangGraph's raw events (`astream_events`, version 2) into the events of a run."""

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, Interrupt
from pydantic import ValidationError

from maniple.agents.plan_edits import SKIPPED
from maniple.agents.task import explain_failure
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
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.run_view import StreamState
from maniple.events.turns import AgentTurn, TurnMultiplexer
from maniple.text import fix_surrogates
from maniple.types import AGENT_MARK, BROWSER_STEP, PRIVATE_CHANNEL, TOOL_OUTPUT, UNSPOKEN, RunStatus

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
        self._turns = TurnMultiplexer()
        self._workflow_started = stream.has_workflow_started
        self._plan: PlanChanged | None = stream.plan
        self._plan_data: Mapping[str, Any] = stream.plan.data() if stream.plan else {}
        self._running: dict[str, str] = {}
        self._agent_ids: Counter[str] = Counter(stream.turn_counts)
        self._clock: dict[str, float] = {}
        self._pauses: dict[str, Any] = {}

    def open(self) -> Iterator[Event]:
        """Yield the first event of a stream, or the events that close what a crash left open."""
        if self._stream.has_started:
            yield from self._stream.closing_events()
        else:
            yield RunStarted(run_id=self._run_id, thread_id=self._thread_id)

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
        agent = self._turns.current_agent() or next(reversed(self._running.values()), None)
        yield from self._turns.close_all()
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
                yield interrupt_event(interrupt_id, value)
        if error is not None:
            yield _failed(error, agent)
        has_answer = status in ("completed", "budget_exhausted")
        gaps = _find_gaps(self._plan_data) if has_answer else []
        yield RunStatusChanged(status=status, gaps=gaps or None)

    def recall(self, messages: Sequence[BaseMessage]) -> None:
        """Set the conversation so far to `messages`, from the graph's state."""
        self._messages, self.knows_conversation = list(messages), True

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
        turn = AgentTurn(agent, self._agent_id(agent, raw["metadata"].get("langgraph_step", 0)), self._run_id)
        before = () if agent == "coordinator" else self._start_workflow()
        yield from self._turns.open(key, turn, before)

    def _agent_id(self, agent: str, step: int) -> str:
        agent_id = f"{self._run_id}_{agent}_{step}"
        self._agent_ids[agent_id] += 1
        # Two teams that a parent runs in parallel are at the same step.
        again = self._agent_ids[agent_id]
        return agent_id if again == 1 else f"{agent_id}_{again}"

    def _node_ended(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running.pop(key, None)
        update = _update_of(raw["data"].get("output"))
        new: list[BaseMessage] = list(update.get("messages") or ())
        self._messages += new
        turn = self._turns.turn(key)
        if turn is not None:
            answer, message_id = (fix_surrogates(new[-1].text), new[-1].id or "") if new else ("", "")
            yield from self._turns.close(key, turn.end(answer, message_id))
        private: Mapping[str, Any] = update.get(PRIVATE_CHANNEL) or {}
        if plan := private.get("plan"):
            self._plan_data = plan
        if ended := private.get("ended"):
            self._plan_data = _with_outcomes(self._plan_data, ended)
        if self._plan_data and (plan or ended):
            event = _plan_changed(self._plan_data)
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
        turn = self._turns.turn(key)
        # A summary for a shorter context is not shown; a repaired passage is sent within the report.
        if turn is None or raw["metadata"].get("lc_source") in UNSPOKEN:
            yield from usage
            return
        if kind == "start":
            yield from self._turns.send(key, turn.model_started(call, parents))
        elif kind == "stream":
            yield from self._turns.send(key, _text_events(turn, call, raw["data"].get("chunk")))
        elif kind == "end":
            yield from self._turns.send(key, [*turn.model_ended(call), *usage])

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
        turn = self._turns.turn(key)
        if turn is None:
            return
        call, data = raw["run_id"], raw["data"]
        match raw["event"]:
            case "on_tool_start":
                given = data.get("input")
                arguments = _plain(_as_mapping(given, "input"))
                started = turn.tool_started(call, raw.get("parent_ids") or (), raw["name"], arguments)
                yield from self._turns.send(key, started)
            case "on_tool_end":
                yield from self._turns.send(key, turn.tool_ended(call, _result_text(data.get("output"))))
            case "on_tool_error":
                message = _failure(raw["name"], data)
                yield from self._turns.send(key, turn.tool_ended(call, message))
            case _:
                pass

    def _custom_event(self, raw: Mapping[str, Any], key: str) -> Iterator[Event]:
        turn, data = self._turns.turn(key), raw["data"]
        if turn is None:
            return
        match raw["name"]:
            case event if event == TOOL_OUTPUT:
                printed = turn.tool_printed(raw["run_id"], data["stream"], fix_surrogates(data["text"]))
                yield from self._turns.send_or_drop(key, printed)
            case event if event == BROWSER_STEP:
                stepped = turn.browser_stepped([*(raw.get("parent_ids") or ()), raw["run_id"]], _plain(data))
                yield from self._turns.send(key, stepped)
            case name if event_type := CUSTOM_EVENT_TYPES.get(name):
                yield from self._turns.send(key, [event_type.model_validate(_plain(data))])
            case _:
                pass


async def translate(
    raw_events: AsyncIterator[Any], *, run_id: str, thread_id: str, messages: Sequence[BaseMessage]
) -> AsyncIterator[Event]:
    """Translate the `astream_events` of the team, or of any graph that embeds it, until they end.

    An error of the graph becomes events and is not raised; a cancellation is.
    """
    translator = Translator(run_id, thread_id, messages)
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


def _text_events(turn: AgentTurn, call: str, chunk: Any) -> Iterator[Event]:
    if not isinstance(chunk, AIMessageChunk):
        return
    message_id = chunk.id or call
    thought = chunk.additional_kwargs.get("reasoning_content") or ""
    yield from turn.reasoning(call, message_id, fix_surrogates(thought))
    yield from turn.text(call, message_id, fix_surrogates(chunk.text))


def _plan_changed(plan: Mapping[str, Any]) -> PlanChanged:
    return PlanChanged(title=plan["title"], steps=[_step_view(step) for step in plan["steps"]])


def _find_gaps(plan: Mapping[str, Any]) -> list[RunGap]:
    """Return the steps of a plan that were not done; what the user skipped, or others replaced, is none."""
    return [
        RunGap(step=step["title"], reason=explain_failure(fix_surrogates(step.get("reason") or "")))
        for step in plan.get("steps", ())
        if step["status"] in ("failed", "skipped")
        and step.get("reason") != SKIPPED
        and not step.get("is_replaced")
    ]


def _with_outcomes(plan: Mapping[str, Any], ended: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the plan with outcomes of concurrent steps; steps that waited only for them have begun."""
    steps = [{**step, **ended.get(str(step["id"]), {})} for step in plan.get("steps", ())]
    done = {step["id"] for step in steps if step["status"] == "completed"}
    earlier: list[int] = []
    for step in steps:
        needs = earlier if step.get("needs") is None else step["needs"]
        if step["status"] == "not_started" and step["agent_name"] != "reporter" and done.issuperset(needs):
            step["status"] = "in_progress"
        earlier.append(step["id"])
    return {**plan, "steps": steps}


def _step_view(step: Mapping[str, Any]) -> PlanStepView:
    known = {name: step[name] for name in PlanStepView.model_fields if name != "reason"}
    # A checkpoint of an older version has no reasons.
    reason = step.get("reason") if step["status"] in ("failed", "blocked", "skipped") else None
    return PlanStepView(**known, reason=fix_surrogates(reason) or None)


def _failed(error: Exception, agent: str | None) -> ErrorOccurred:
    known = isinstance(error, ManipleError)
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
    """Return the event for one pause; `value` is the value of the graph's interrupt."""
    payload = _plain(_as_mapping(value, "value"))
    # A parent graph may pause, too, with a kind of its own.
    kind = payload.pop("kind") if payload.get("kind") in _KINDS else "question"
    return RunInterrupted(
        interrupt_id=interrupt_id, kind=kind, payload=payload, options=_options(kind, payload)
    )


def _options(kind: str, payload: Mapping[str, Any]) -> list[str]:
    """Return the kinds of accepted answers; for a question the options to choose from."""
    if kind == "plan_review":
        return ["accept", "edit", "reply"]
    if kind == "tool_approval":
        unknown = payload.get("reason") == "unknown_result"
        return ["run_again", "skip"] if unknown else ["approve", "edit", "reject"]
    options = payload.get("options")
    return [str(option) for option in cast("list[object]", options)] if isinstance(options, list) else []
