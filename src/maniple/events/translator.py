"""The translation of LangGraph's raw events (`astream_events`, version 2) into the events of a run."""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command

from maniple.agents.task import explain_gap, find_gap_steps, find_unanswered, is_rejected
from maniple.errors import ManipleError, describe_error
from maniple.events.agent_turn import BUFFERED_AGENTS, AgentTurn
from maniple.events.base import CUSTOM_EVENT_TYPES, Event, TurnMark
from maniple.events.conversation import as_chat_message
from maniple.events.model import (
    ErrorOccurred,
    PlanChanged,
    RunGap,
    RunStarted,
    RunStatusChanged,
    SessionState,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.raw_data import as_json_values, interrupt_event, plan_changed, report_usage
from maniple.events.run_view import StreamState
from maniple.events.turns import order_turns
from maniple.langgraph_internals import interrupts_of, is_node, path_of, step_of
from maniple.text import fix_surrogates
from maniple.tools.questions import in_order, interrupt_of
from maniple.types import (
    AGENT_MARK,
    EFFORT_NOT_USED,
    GAP_REVIEW,
    LEAD_DECISION,
    LEAD_REPLY,
    MODEL_UNREACHABLE,
    PLAN_EVENT,
    PRIVATE_CHANNEL,
    STEP_INTERRUPT,
    RunStatus,
)

SILENT = frozenset({"supervisor"})
_WORK = ("on_chat_model", "on_tool", "on_custom_event")
"""How the kinds of raw events begin that a turn consists of."""


@dataclass(slots=True)
class _Node:
    """A running node of the team."""

    agent: str
    step: int
    """The number of LangGraph's step."""
    waiting_step: int | None = None
    """The plan's step whose turn begins with its first work: it waits for the results that it needs."""
    turn: AgentTurn | None = None


class Translator:
    """Translates the raw events of one run; feed it each, then close it once.

    The events come in the order in which they happen: those of concurrent turns interleave, and each is
    marked with its turn. What a caller does not take of the events is returned first by the next call.

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
        self._nodes: dict[str, _Node] = {}
        """The running nodes by their checkpoint namespace."""
        self._workflow_started = stream.has_workflow_started
        self._plan: PlanChanged | None = stream.plan
        self._plan_data: Mapping[str, Any] = stream.plan.data() if stream.plan else {}
        self._shown_changes: frozenset[str] = frozenset()
        """The ids of the user's changes in the plan that was sent last."""
        self._agent_ids = set(stream.turn_ids)
        self._clock: dict[str, float] = {}
        self._pauses: dict[str, Any] = {}
        self._asked: dict[str, str] = {}
        """The ids of the questions that steps have asked, by the ids of their interrupts."""
        self._left: list[RunGap] = []
        self._made: deque[Event] = deque()

    def open(self) -> Iterator[Event]:
        """Return the first event of a stream, or the events that close what a crash left open."""
        if self._stream.has_started:
            self._made.extend(self._stream.closing_events())
        else:
            self._made.append(RunStarted(run_id=self._run_id, thread_id=self._thread_id))
        return self._take()

    def resume(self) -> None:
        """Forget what the graph waited for: it is executed again."""
        self._pauses = {}

    def feed(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        """Return the events for one raw event: none, one or several."""
        kind = raw["event"]
        if kind == "on_chain_stream":
            pauses = interrupts_of(raw["data"].get("chunk"))
            self._pauses |= {pause.id: pause.value for pause in pauses}
        key, agent = _agent_of(raw.get("metadata") or {})
        if agent is not None:
            key = self._owner(key, agent)
            if kind == "on_chain_start" and _is_node(raw, key, agent):
                self._start_node(raw, key, agent)
            elif kind == "on_chain_end" and _is_node(raw, key, agent):
                self._end_node(raw, key)
            elif kind == "on_custom_event" and raw["name"] == PLAN_EVENT:
                self._change_wave(raw["data"], key)
            elif kind.startswith(_WORK):
                self._hand_down(raw, key, agent)
        return self._take()

    def close(
        self,
        status: RunStatus,
        error: Exception | None = None,
        find_exchange: Callable[[], Sequence[BaseMessage]] = tuple,
    ) -> Iterator[Event]:
        """End the run: close what is open, send the error and the conversation.

        A run that completed with a pause is `interrupted`, and its pauses are sent. `find_exchange` is called
        once the caller has taken the status: it returns the messages between user and lead in this run, which
        the state may lack.
        """
        nodes = list(self._nodes.values())
        at_work = [node for node in nodes if node.turn is not None]
        agent = (at_work[0] if at_work else nodes[-1]).agent if nodes else None
        for node in at_work:
            self._end_turn(node)
        if self._stream.status is None:
            self._add_outcome(status, error, agent)
        yield from self._take()
        known = {message.id for message in self._messages}
        self._messages += [message for message in find_exchange() if message.id not in known]
        messages = [as_chat_message(message) for message in self._messages]
        if self._workflow_started and not self._stream.has_workflow_ended:
            self._made.append(WorkflowEnded(workflow_id=self._run_id, messages=messages))
        self._made.append(SessionState(messages=messages))
        yield from self._take()

    def recall(self, messages: Sequence[BaseMessage]) -> None:
        """Set the conversation so far to `messages`, from the graph's state."""
        self._messages, self.knows_conversation = list(messages), True

    def leave_gaps(self, plan: Mapping[str, Any]) -> None:
        """Report, with the end of a cancelled retry, the steps of `plan` that are still not done."""
        self._left = _list_gaps(plan, with_open=True)

    def _take(self) -> Iterator[Event]:
        while self._made:
            yield self._made.popleft()

    def _add_outcome(self, status: RunStatus, error: Exception | None, agent: str | None) -> None:
        if status == "completed" and self._pauses:
            status = "interrupted"
        if status != "completed":
            self._start_workflow()
        if status == "interrupted":
            for interrupt_id, value in in_order(self._pauses):
                self._made.append(interrupt_event(self._asked.get(interrupt_id, interrupt_id), value))
        if error is not None:
            self._made.append(_failed(error, agent))
        has_answer = status in ("completed", "budget_exhausted")
        has_answer = has_answer or (isinstance(error, ManipleError) and error.has_answer)
        gaps = _list_gaps(self._plan_data) if has_answer else self._left
        self._made.append(RunStatusChanged(status=status, gaps=gaps or None))

    def _owner(self, key: str, agent: str) -> str:
        """Return the running node that contains `key`: an agent may be a graph with a node of its name."""
        nodes = (one for one, node in self._nodes.items() if node.agent == agent)
        return next((one for one in nodes if key.startswith(f"{one}|")), key)

    def _start_workflow(self) -> None:
        if not self._workflow_started:
            self._workflow_started = True
            self._made.append(WorkflowStarted(workflow_id=self._run_id, input=self._input))

    def _start_node(self, raw: Mapping[str, Any], key: str, agent: str) -> None:
        if (stale := self._nodes.pop(key, None)) is not None:
            self._end_turn(stale)
        node = self._nodes[key] = _Node(agent, step_of(raw["metadata"]))
        state = raw["data"].get("input")
        # Inside a parent graph a node sees what the parent passed on: it may be only a part.
        if "|" not in key and isinstance(state, Mapping):
            messages: Sequence[BaseMessage] = cast("Mapping[str, Any]", state).get("messages") or ()
            if messages:
                self.recall(messages)
        if agent in SILENT:
            return
        private = _private_of(state)
        if step_id := private.get("step"):
            node.waiting_step = step_id
        else:
            self._begin_turn(node, _current_step(private, agent))

    def _begin_turn(self, node: _Node, step_id: int | None) -> None:
        node.waiting_step = None
        if node.agent != "coordinator":
            self._start_workflow()
        mark = TurnMark(self._new_agent_id(node), step_id)
        node.turn = AgentTurn(node.agent, mark, self._run_id)
        self._made += node.turn.begin()

    def _turn_at_work(self, node: _Node | None) -> AgentTurn | None:
        """Return the turn of a node that does something; one that has waited begins now."""
        if node is None:
            return None
        if node.waiting_step is not None:
            self._begin_turn(node, node.waiting_step)
        return node.turn

    def _end_turn(self, node: _Node, answer: str = "", message_id: str = "") -> None:
        if node.turn is not None:
            self._made += node.turn.end(answer, message_id)
            node.turn = None

    def _new_agent_id(self, node: _Node) -> str:
        first = agent_id = f"{self._run_id}_{node.agent}_{node.step}"
        again = 1
        # Concurrent steps, and two teams that a parent runs in parallel, are at the same step.
        while agent_id in self._agent_ids:
            again += 1
            agent_id = f"{first}_{again}"
        self._agent_ids.add(agent_id)
        return agent_id

    def _end_node(self, raw: Mapping[str, Any], key: str) -> None:
        update = _update_of(raw["data"].get("output"))
        known = {message.id for message in self._messages if message.id}
        # The end of an embedded run adds its outcome to the last message.
        new: list[BaseMessage] = [one for one in update.get("messages") or () if one.id not in known]
        self._messages += new
        if (node := self._nodes.pop(key, None)) is not None:
            if new:
                self._turn_at_work(node)
            answer, message_id = (fix_surrogates(new[-1].text), new[-1].id or "") if new else ("", "")
            self._end_turn(node, answer, message_id)
        private: Mapping[str, Any] = update.get(PRIVATE_CHANNEL) or {}
        if plan := private.get("plan"):
            self._add_plan(plan)

    def _add_plan(self, plan: Mapping[str, Any]) -> None:
        """Send the plan if clients do not have it so.

        A step that began before a change ends with the plan before it, when the change is already shown. The
        supervisor, which is next, shows what came of the step together with the change.
        """
        changes = frozenset[str](plan.get("changes") or ())
        if not changes >= self._shown_changes:
            return
        self._plan_data, self._shown_changes = plan, changes
        event = plan_changed(plan)
        if event != self._plan:
            self._plan = event
            self._made.append(event)

    def _change_wave(self, change: Mapping[str, Any], key: str) -> None:
        """Send the current plan; begin or end the turn for an attempt of a concurrent step."""
        if (node := self._nodes.get(key)) is not None:
            if change["step"]:
                self._end_turn(node)
            if change["begins"]:
                self._begin_turn(node, change["step"])
        self._add_plan(change["plan"])

    def _hand_down(self, raw: Mapping[str, Any], key: str, agent: str) -> None:
        """Let the turn that a raw event belongs to make its events."""
        kind, data = raw["event"], raw["data"]
        custom = raw["name"] if kind == "on_custom_event" else ""
        if kind == "on_chat_model_start":
            self._clock[raw["run_id"]] = time.monotonic()
        elif custom == STEP_INTERRUPT:
            self._asked[interrupt_of(data["interrupt_id"])] = data["interrupt_id"]
        turn = self._turn_at_work(self._nodes.get(key))
        if turn is not None:
            self._made += turn.feed(raw)
        elif custom in (
            EFFORT_NOT_USED,
            GAP_REVIEW,
            LEAD_DECISION,
            LEAD_REPLY,
            MODEL_UNREACHABLE,
        ):  # the lead is the supervisor, which has no turn
            self._made.append(CUSTOM_EVENT_TYPES[custom].model_validate(as_json_values(data)))
        if kind == "on_chat_model_end" and isinstance(answer := data.get("output"), AIMessage):
            seconds = time.monotonic() - self._clock.pop(raw["run_id"], time.monotonic())
            usage = report_usage(agent, answer, seconds, model=raw["name"])
            self._made.append(usage.in_turn(turn.mark if turn is not None else None))


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


def _list_gaps(plan: Mapping[str, Any], *, with_open: bool = False) -> list[RunGap]:
    gaps = [
        RunGap(step=step["title"], reason=explain_gap(step), rejected=is_rejected(step) or None)
        for step in find_gap_steps(plan, with_open=with_open)
    ]
    return [*gaps, *(RunGap(step=question, reason=why) for question, why in find_unanswered(plan))]


def _failed(error: Exception, agent: str | None) -> ErrorOccurred:
    known = isinstance(error, ManipleError)
    agent = (error.agent_name if known else "") or agent
    message = str(error) if known else f"Something went wrong inside maniple ({describe_error(error)})."
    code = error.code if known else "internal"
    return ErrorOccurred(code=code, message=message, agent_name=agent, retryable=known and error.retryable)


def _agent_of(metadata: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the agent that an event belongs to, and the checkpoint namespace up to its node.

    Any segment of the namespace may be the agent's; the mark keeps a parent's node of the same name apart.
    """
    agent = metadata.get(AGENT_MARK)
    if not isinstance(agent, str):
        return "", None
    path = path_of(metadata)
    for length in range(len(path), 0, -1):
        if path[length - 1].split(":")[0] == agent:
            return "|".join(path[:length]), agent
    return "", None


def _is_node(raw: Mapping[str, Any], key: str, agent: str) -> bool:
    """Return whether an event is of the agent's node itself, and not of something inside it."""
    # A named agent starts twice: once as a node of the graph, once as its own graph.
    return (
        raw.get("name") == agent and is_node(raw.get("tags")) and path_of(raw["metadata"]) == key.split("|")
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
