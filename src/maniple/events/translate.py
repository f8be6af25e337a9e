"""LangGraph's raw events in, ours out: the one translation, whoever streams the graph."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.types import Command

from maniple.errors import ManipleError, failure_words
from maniple.events.lane import Lane
from maniple.events.model import (
    ChatMessage,
    Event,
    Failed,
    Interrupted,
    PlanChanged,
    PlanStepView,
    RunStarted,
    RunStatusChanged,
    SessionState,
    Usage,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.sequence import Sequencer
from maniple.text import whole
from maniple.types import AGENT_MARK, AGENTS, RunStatus

SILENT = frozenset({"supervisor"})
_AGENTS = frozenset(AGENTS)


class Translator:
    """Translates the raw events of one run; feed it each, then close it once.

    `run_id` becomes the workflow's id. `messages` are the conversation that the run was given.
    """

    def __init__(self, run_id: str, thread_id: str, messages: Sequence[BaseMessage]) -> None:
        self._run_id = run_id
        self._thread_id = thread_id
        self._input = [as_chat_message(message) for message in messages]
        self._messages = list(self._input)
        self._sequencer = Sequencer()
        self._workflow_started = False
        self._plan: PlanChanged | None = None
        self._running: dict[str, str] = {}
        self._clock: dict[str, float] = {}
        self._pauses: dict[str, Any] = {}

    def open(self) -> Iterator[Event]:
        """Yield the first event of every stream."""
        yield RunStarted(run_id=self._run_id, thread_id=self._thread_id)

    def feed(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events that `raw` stands for: none, one or several."""
        kind = raw["event"]
        if kind == "on_chain_stream":
            self._note_pauses(raw["data"].get("chunk"))
        key, agent = _agent_of(raw.get("metadata") or {})
        if agent is None:
            return
        if kind == "on_chain_start" and _is_node(raw, key, agent):
            yield from self._node_started(raw, key, agent)
        elif kind == "on_chain_end" and _is_node(raw, key, agent):
            yield from self._node_ended(raw, key, agent)
        elif kind.startswith("on_chat_model"):
            yield from self._model(raw, key, agent)
        elif kind.startswith("on_tool"):
            yield from self._tool(raw, key)

    def close(self, status: RunStatus, error: Exception | None = None) -> Iterator[Event]:
        """End the run: close what is open, say what went wrong, hand back the conversation.

        A run that completed with a pause is `interrupted`, and tells what it waits for.
        """
        agent = self._sequencer.speaking() or next(reversed(self._running.values()), None)
        yield from self._sequencer.close_all()
        if status == "completed" and self._pauses:
            status = "interrupted"
        if status != "completed":
            yield from self._start_workflow()
        if status == "interrupted":
            for interrupt_id, value in self._pauses.items():
                yield _interrupted(interrupt_id, value)
        if error is not None:
            yield _failed(error, agent)
        yield RunStatusChanged(status=status)
        if self._workflow_started:
            yield WorkflowEnded(workflow_id=self._run_id, messages=self._messages)
        yield SessionState(messages=self._messages)

    def _note_pauses(self, chunk: Any) -> None:
        if isinstance(chunk, Mapping):
            for pause in chunk.get("__interrupt__") or ():
                self._pauses[pause.id] = pause.value

    def _start_workflow(self) -> Iterator[Event]:
        if not self._workflow_started:
            self._workflow_started = True
            yield WorkflowStarted(workflow_id=self._run_id, input=self._input)

    def _node_started(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running[key] = agent
        if agent in SILENT:
            return
        step = raw["metadata"].get("langgraph_step", 0)
        lane = Lane(agent, f"{self._run_id}_{agent}_{step}", self._run_id)
        before = () if agent == "coordinator" else self._start_workflow()
        yield from self._sequencer.open(key, lane, before)

    def _node_ended(self, raw: Mapping[str, Any], key: str, agent: str) -> Iterator[Event]:
        self._running.pop(key, None)
        update = _update_of(raw["data"].get("output"))
        said: list[BaseMessage] = list(update.get("messages") or ())
        self._messages += [as_chat_message(message) for message in said]
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
        if lane is None:
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
            yield Usage(
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
                arguments = whole(given if isinstance(given, dict) else {"input": given})
                started = lane.tool_started(call, raw.get("parent_ids") or (), raw["name"], arguments)
                yield from self._sequencer.tell(key, started)
            case "on_tool_end":
                yield from self._sequencer.tell(key, lane.tool_ended(call, _result(data.get("output"))))
            case "on_tool_error":
                words = whole(failure_words(data["error"])) if data.get("error") else "The tool failed."
                yield from self._sequencer.tell(key, lane.tool_ended(call, words))


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


def as_chat_message(message: BaseMessage) -> ChatMessage:
    """Return a message as clients see it."""
    role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    content: Any = message.content
    if isinstance(content, list):
        content = [_part(part) for part in content]
    return ChatMessage(role=role, content=whole(content))


def _part(part: Any) -> dict[str, Any]:
    """Return a part of a message as clients send it, so that they can send it back."""
    match part:
        case {"type": "image_url", "image_url": {"url": url}}:
            return {"type": "image", "image_url": url}
        case dict():
            return part
        case _:
            return {"type": "text", "text": str(part)}


def _agent_of(metadata: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the agent that an event belongs to, and the checkpoint namespace up to its node.

    Any segment of the namespace may be the agent's; the mark keeps a parent's node of the same name apart.
    """
    agent = metadata.get(AGENT_MARK)
    if agent not in _AGENTS:
        return "", None
    segments = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    for length in range(len(segments), 0, -1):
        if segments[length - 1].split(":")[0] == agent:
            return "|".join(segments[:length]), agent
    return "", None


def _is_node(raw: Mapping[str, Any], key: str, agent: str) -> bool:
    # A named agent starts twice: once as a node of the graph, once as its own graph.
    return (
        raw.get("name") == agent
        and raw["metadata"].get("langgraph_checkpoint_ns") == key
        and any(tag.startswith("graph:step:") for tag in raw.get("tags") or ())
    )


def _update_of(output: Any) -> Mapping[str, Any]:
    for one in output if isinstance(output, list) else [output]:
        if isinstance(one, Command) and isinstance(one.update, Mapping):
            return one.update
    return output if isinstance(output, Mapping) else {}


def _spoken(lane: Lane, call: str, chunk: Any) -> Iterator[Event]:
    if not isinstance(chunk, AIMessageChunk):
        return
    message_id = chunk.id or call
    thought = chunk.additional_kwargs.get("reasoning_content") or ""
    yield from lane.reasoning(call, message_id, whole(thought))
    yield from lane.text(call, message_id, whole(chunk.text))


def _result(output: Any) -> str:
    if isinstance(output, ToolMessage):
        return whole(output.text)
    return whole(output if isinstance(output, str) else str(output))


def _plan_changed(plan: Mapping[str, Any]) -> PlanChanged:
    fields = PlanStepView.model_fields
    steps = [PlanStepView(**{name: step[name] for name in fields}) for step in plan["steps"]]
    return PlanChanged(title=plan["title"], steps=steps)


def _interrupted(interrupt_id: str, value: Any) -> Interrupted:
    payload = dict(value) if isinstance(value, Mapping) else {"value": value}
    kind = payload.pop("kind", "question")
    options = ["accept", "edit", "reply"] if kind == "plan_review" else []
    return Interrupted(interrupt_id=interrupt_id, kind=kind, payload=payload, options=options)


def _failed(error: Exception, agent: str | None) -> Failed:
    known = isinstance(error, ManipleError)
    message = str(error) if known else f"Something went wrong inside maniple ({failure_words(error)})."
    code = error.code if known else "internal"
    return Failed(code=code, message=message, agent_name=agent, retryable=known and error.retryable)
