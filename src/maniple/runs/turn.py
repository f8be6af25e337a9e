"""One turn of the team on a thread, from its first event to its last."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from maniple.events import Event, StreamState, Translator
from maniple.events.conversation import attributed
from maniple.events.turns import order_turns
from maniple.graph import RECURSION_LIMIT, PlanProgress, RunOptions, Team, members_of
from maniple.graph.state import make_update, private_of, records_of
from maniple.graph.step_records import StepRecord, apply_records, close_progress, read_records
from maniple.langgraph_internals import writes_of
from maniple.runs.ended_runs import find_exchange, find_left
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import EndedRun
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.types import GENERAL, RUN_MARK, WORKERS, RunStatus

RECALL_SECONDS = 5.0

Start = Literal["message", "new", "answer", "continue", "retry"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the team does in one turn, by `start`:

    "new" sends the messages; a thread with a history gets only the newest. "message" does the same, except
    that the message is the answer on a thread that waits for one. "answer" sends `answers`, by interrupt id.
    "continue" starts from the run's last checkpoint, or from its beginning without one. "retry" does the same
    for a run that had ended. Changes of the plan that such a run has not applied yet are applied before it
    ends. `stream` is the state of the run's stream so far. The team works inside `gate`.
    """

    run_id: str
    thread_id: str
    messages: Sequence[BaseMessage]
    options: RunOptions = field(default_factory=RunOptions)
    start: Start = "message"
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stream: StreamState = field(default_factory=StreamState)
    durable: bool = False
    """Whether each step is stored before the next one begins, so that a crash loses none."""
    scope: RunScope | None = None
    control: RunControl | None = None
    callbacks: Sequence[BaseCallbackHandler] = ()
    gate: AbstractAsyncContextManager[Any] | None = None
    thread_name: str = ""
    """The name of the thread for clients, if it is not the id."""


async def drive(team: Team, turn: Turn) -> AsyncGenerator[Event]:
    """Execute one turn and yield its events, up to `final_session_state`.

    Errors of the run are yielded as events and not raised. If the reading task is cancelled, the closing
    events are still yielded before the cancellation is raised. If `turn.control` requests it, the stream ends
    at the next checkpoint without closing events, to be continued later.
    """
    turn = replace(turn, messages=attributed(turn.messages, (*WORKERS, GENERAL, *members_of(team))))
    translator = Translator(turn.run_id, turn.thread_name or turn.thread_id, turn.messages, turn.stream)
    thread = _Thread(team, turn)
    failure: Exception | None = None
    cancelled: asyncio.CancelledError | None = None
    events = thread.work(translator)
    try:
        async for event in events:
            yield event
    except asyncio.CancelledError as cancellation:
        cancelled = cancellation
        # Thrown in between two events, it has not ended the graph.
        with suppress(Exception, asyncio.CancelledError):
            await events.aclose()
    except GraphDrained:
        return
    except Exception as error:  # noqa: BLE001 - any error that ends the run is reported to the client
        failure, cancelled = _why_it_ended(error)
    cancelled = await _complete_state(thread, translator, cancelled)
    status = turn.stream.status or _status(thread, failure, cancelled)
    for event in translator.close(status, failure, partial(thread.find_exchange, status)):
        yield event
    if cancelled is not None:
        raise cancelled


def _why_it_ended(error: Exception) -> tuple[Exception | None, asyncio.CancelledError | None]:
    """Return the error, or the cancellation beside it: parts of a run may fail while it is cancelled."""
    task = asyncio.current_task()
    return (None, asyncio.CancelledError()) if task is not None and task.cancelling() else (error, None)


def _status(
    thread: "_Thread", failure: Exception | None, cancelled: asyncio.CancelledError | None
) -> RunStatus:
    if cancelled is not None:
        return "cancelled"
    if failure is not None:
        return "failed"
    return "budget_exhausted" if thread.exhausted else "completed"


@dataclass(slots=True)
class _Thread:
    """A conversation with the team, and the input of this turn."""

    team: Team
    turn: Turn
    resumed_run: str = ""
    """The run that the turn continues, by its id in the graph's state."""

    @property
    def exhausted(self) -> str | None:
        """The limit of the budget that shortened the run, if there is one."""
        if (scope := self.turn.scope) is not None:
            return scope.meter.exhausted if scope.meter is not None else None
        return self.team.scopes.exhausted(self.resumed_run or self.turn.run_id)

    @property
    def keeps(self) -> bool:
        """Whether the thread has a checkpointer, which stores it between runs."""
        return self._saver is not None

    @property
    def _saver(self) -> BaseCheckpointSaver[Any] | None:
        saver = cast("Any", self.team).checkpointer
        return cast("BaseCheckpointSaver[Any]", saver) if isinstance(saver, BaseCheckpointSaver) else None

    @property
    def config(self) -> RunnableConfig:
        """The configuration with which the graph is run."""
        configurable: dict[str, Any] = {"thread_id": self.turn.thread_id}
        config: RunnableConfig = {
            "configurable": configurable,
            "metadata": {RUN_MARK: self.turn.run_id},
            # `astream_events` would put LangGraph's default of 25 in the place of the graph's own limit.
            "recursion_limit": RECURSION_LIMIT,
        }
        if (scope := self.turn.scope) is not None:
            configurable[SCOPE_KEY] = scope
        meter = scope.meter.callbacks if scope is not None and scope.meter is not None else []
        if callbacks := [*meter, *self.turn.callbacks]:
            config["callbacks"] = callbacks
        return config

    async def work(self, translator: Translator) -> AsyncGenerator[Event]:
        """Yield the opening events, then run the graph within the turn's gate and yield its events."""
        for event in translator.open():
            yield event
        if self.turn.stream.status is not None:
            return  # it had ended already
        async with self.turn.gate or nullcontext(), aclosing(self._run(translator)) as events:
            async for event in events:
                yield event

    async def _run(self, translator: Translator) -> AsyncGenerator[Event]:
        keeping: dict[str, Any] = {}
        if self.keeps:
            keeping["durability"] = "sync" if self.turn.durable else "exit"
        if self.turn.control is not None:
            keeping["control"] = self.turn.control
        given, inbox = await self.input(), self._inbox
        while True:
            translator.resume()
            team: Any = self.team  # its type is not known in all parts
            raw_events = team.astream_events(
                given, self.config, context=self.turn.options, version="v2", **keeping
            )
            # A generator, although its type does not say so: closing it cancels the graph and waits for its
            # end.
            async with aclosing(cast("AsyncGenerator[Any]", raw_events)) as stream:
                async for raw in stream:
                    for event in translator.feed(raw):
                        yield event
            if await inbox.seal_questions():
                return
            given = None  # a step that had stopped to wait was answered before the others ended

    async def input(self) -> Any:
        """Return the input of the graph."""
        turn = self.turn
        if not self.keeps:
            return {"messages": list(turn.messages)}
        state = await self.team.aget_state(self.config)
        answers = {pause.id: turn.answers[pause.id] for pause in state.interrupts if pause.id in turn.answers}
        resumed_run = private_of(state.values).get("run_id", "")
        if turn.start == "message" and state.interrupts:
            self.resumed_run = resumed_run
            return Command(resume=turn.messages[-1].text)
        if turn.start == "answer" or (turn.start == "continue" and answers):
            self.resumed_run = resumed_run
            return Command(resume=answers)
        if turn.start in ("continue", "retry") and run_of(state) == turn.run_id:
            self.resumed_run = resumed_run
            return Command(goto="supervisor") if self._waits_for_edits(state) else None
        if state.next and run_of(state) != turn.run_id:
            await self._store_progress(state)
        given = turn.messages[-1:] if state.values.get("messages") else turn.messages
        return {"messages": [*await self._find_left(state), *given]}

    async def _find_left(self, state: StateSnapshot) -> list[BaseMessage]:
        """Return what user and lead wrote in earlier runs, and the state lacks because those were stopped."""
        read_runs = self.turn.scope.read_runs if self.turn.scope is not None else None
        if read_runs is None:
            return []
        runs = await read_runs(private_of(state.values).get("folded") or ())
        return find_left(runs, state.values.get("messages") or ())

    def find_exchange(self, status: RunStatus) -> list[BaseMessage]:
        """Return what user and lead have written to each other in this run, which ends with `status`."""
        received = self._inbox.received
        return find_exchange(received, status) if received else []

    async def _store_progress(self, state: StateSnapshot) -> None:
        """Store the plan as the last run of the thread left it, where that was stopped in a superstep.

        The next input would drop the results of that superstep, and does not know the changes sent to it.
        """
        private = private_of(state.values)
        if not (plan := private.get("plan")):
            return
        before = await self._read_run(private.get("run_id", ""), private.get("folded") or ())
        changes, members = (before.changes, before.members) if before is not None else ((), ())
        records = await self._read_records(state)
        progress = close_progress(PlanProgress.from_state(plan), records, changes, members).to_state()
        if state.tasks or progress != plan:
            # The state has the messages of that superstep, too; those that are stored already do not change.
            update = make_update(*state.values.get("messages") or (), plan=progress, ended=None)
            await self.team.aupdate_state(self.config, update, as_node="supervisor")

    async def _read_run(self, run_id: str, known: Collection[str]) -> EndedRun | None:
        """Return an earlier run of the thread that is not among the `known` ones, or None."""
        read_runs = self.turn.scope.read_runs if self.turn.scope is not None else None
        runs = await read_runs(known) if read_runs is not None else ()
        return next((one for one in runs if one.run_id == run_id), None)

    async def _read_records(self, state: StateSnapshot) -> list[StepRecord]:
        """Return what the plan of a state does not contain yet of its superstep, and of the one before."""
        saver = self._saver
        stored = await saver.aget_tuple(state.config) if saver is not None else None
        return [*records_of(state.values), *read_records(writes_of(stored))[0]]

    async def plan(self) -> Mapping[str, Any]:
        """Return the plan from which a retry of the run would go on; {} for none."""
        state = await self.team.aget_state(self.config)
        if not (plan := private_of(state.values).get("plan")):
            return {}
        records, members = await self._read_records(state), self.turn.options.at_work(members_of(self.team))
        changes = self._inbox.changes
        return apply_records(PlanProgress.from_state(plan), records, changes, members).to_state()

    def _waits_for_edits(self, state: StateSnapshot) -> bool:
        """Return whether the graph has ended although changes of its plan are pending."""
        plan = private_of(state.values).get("plan")
        return bool(plan) and not state.next and self._inbox.has_new(plan["changes"])

    @property
    def _inbox(self) -> Inbox:
        return self.turn.scope.inbox if self.turn.scope is not None else Inbox()

    async def conversation(self) -> list[BaseMessage]:
        """Return the whole conversation, including the newest message of this run."""
        given = self.turn.messages
        if not self.keeps:
            return list(given)
        state = await self.team.aget_state(self.config)
        stored: list[BaseMessage] = state.values.get("messages") or []
        newest = given[-1]
        if state.interrupts or any(message is newest or message.id == newest.id for message in stored):
            return stored
        left = await self._find_left(state)
        return [*stored, *left, newest] if stored else [*left, *given]


async def thread_state(team: Team, thread_id: str) -> StateSnapshot:
    """Return the state of a thread, and what it waits for."""
    return await team.aget_state({"configurable": {"thread_id": thread_id}})


async def remember(team: Team, thread_id: str, messages: Sequence[BaseMessage]) -> None:
    """Add messages to a thread that no run has stored; no run may be active on it."""
    state = await thread_state(team, thread_id)
    known = {message.id for message in state.values.get("messages") or ()}
    # The state may contain the write of a task whose step was not committed: the next input drops it.
    if state.tasks or not known.issuperset(message.id for message in messages):
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        stored, ended = state.values.get("messages") or (), private_of(state.values).get("ended")
        # As the node that no other node follows by itself.
        await team.aupdate_state(
            config, make_update(*stored, *messages, ended=ended or None), as_node="supervisor"
        )


def run_of(state: StateSnapshot) -> str | None:
    """Return the id of the run that wrote the newest checkpoint of a thread."""
    return (state.metadata or {}).get(RUN_MARK)


async def _complete_state(
    thread: _Thread, translator: Translator, cancelled: asyncio.CancelledError | None
) -> asyncio.CancelledError | None:
    """Read what the closing events need from the state; return the cancellation before or meanwhile."""
    if not translator.knows_conversation:
        cancelled = await _recall(thread, translator) or cancelled
    if cancelled is not None:
        translator.leave_gaps(await _plan_of(thread))
    return cancelled


async def _recall(thread: _Thread, translator: Translator) -> asyncio.CancelledError | None:
    """Read the conversation of a run that ended before its first node; return a cancellation meanwhile."""
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            translator.recall(await thread.conversation())
    except asyncio.CancelledError as cancellation:
        return cancellation
    except Exception:  # noqa: BLE001 - a state that cannot be read leaves what the run was given
        return None
    return None


async def _plan_of(thread: _Thread) -> Mapping[str, Any]:
    """Return the plan from which a retry would go on; {} where there is none, or none can be read."""
    try:
        async with asyncio.timeout(RECALL_SECONDS):
            return await thread.plan()
    except (asyncio.CancelledError, Exception):  # noqa: BLE001 - the run ends in any case
        return {}


async def stream_run(
    team: Team,
    messages: Sequence[BaseMessage],
    *,
    thread_id: str | None = None,
    options: RunOptions | None = None,
    run_id: str | None = None,
    is_live: bool = False,
) -> AsyncIterator[Event]:
    """Run the team on `messages` and yield typed events, from `run` to `final_session_state`.

    The turns of concurrent agents come one after another; with `is_live` as they happen, each event marked
    with its `turn`.

    On a thread with a history (the team must have a checkpointer) only the newest message is added; on
    one that waits for an answer, that message is the answer. The last events hold the whole conversation.
    Errors of the run are yielded as events and not raised. If the reading task is cancelled, the closing
    events are still yielded before the cancellation is raised.
    """
    run_id = run_id or str(uuid4())
    turn = Turn(run_id, thread_id or run_id, messages, options or RunOptions())
    async with aclosing(drive(team, turn)) as events:
        async for event in events if is_live else order_turns(events):
            yield event
