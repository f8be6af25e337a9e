"""LangGraph's second streaming protocol: commands to a thread, and a stream of its events over all runs."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.error_responses import error_responses
from maniple.api.protocols.following import follow_run, stream_frames
from maniple.api.protocols.langgraph.accepting import accept_run, answer_run
from maniple.api.protocols.langgraph.assistants import UnsupportedRequest
from maniple.api.protocols.langgraph.run_request import InvalidRun, LangGraphRun
from maniple.api.protocols.langgraph.thread_events import (
    RUN_NUMBERS,
    RunEvents,
    ThreadEvent,
    number_of,
)
from maniple.api.protocols.langgraph.thread_routes import ThreadPath
from maniple.api.protocols.langgraph.thread_states import find_newest_line
from maniple.api.protocols.langgraph.transcripts import (
    join_messages,
    make_values,
    open_transcript,
    read_transcripts,
)
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.runs import AcceptedRun, RunNotWorking
from maniple.service import Service
from maniple.service.thread_views import get_thread
from maniple.store import RunRecord, Store, Thread, read_runs

router = keyed_router("langgraph", is_protocol=True)
_IDLE_SECONDS = 5.0
"""How often an idle stream looks for runs that were started without a command, by another protocol."""
_ERRORS = {
    "not_found": "no_such_run",
    "not_waiting": "no_such_interrupt",
    "not_working": "no_such_run",
    "nothing_to_retry": "no_such_run",
    "invalid_input": "invalid_argument",
    "unsupported": "not_supported",
}
"""The protocol's codes of errors; other errors are answered with their HTTP status."""
_STREAM: dict[int | str, dict[str, Any]] = {200: describe_stream("The events of the chosen channels")}


@dataclass(slots=True)
class ThreadBells:
    """Wakes the idle streams of a thread in this process when a command has started or continued a run."""

    _waiting: defaultdict[str, set[asyncio.Event]] = field(
        default_factory=lambda: defaultdict[str, set[asyncio.Event]](set)
    )

    def ring(self, thread_id: str) -> None:
        """Wake the streams of a thread."""
        for one in self._waiting.get(thread_id, ()):
            one.set()

    async def wait(self, thread_id: str, seconds: float) -> None:
        """Wait until the bell of a thread rings, at most `seconds`."""
        rung = asyncio.Event()
        self._waiting[thread_id].add(rung)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(rung.wait(), seconds)
        finally:
            self._waiting[thread_id].discard(rung)
            if not self._waiting[thread_id]:
                del self._waiting[thread_id]


async def _bells_of(request: Request) -> ThreadBells:
    # Asynchronous without waiting: FastAPI runs other dependencies in a thread.
    return request.app.state.thread_bells


BellsOf = Annotated[ThreadBells, Depends(_bells_of)]


class ThreadCommand(BaseModel):
    """A command: `run.start`, `input.respond`, `input.inject` or `state.get`."""

    id: int
    method: str = Field(max_length=100)
    params: dict[str, Any] = {}


class CommandAnswer(BaseModel):
    """What became of a command: its result, or an error with the protocol's code."""

    type: Literal["success", "error"]
    id: int
    result: dict[str, Any] | None = Field(default=None, exclude_if=lambda value: value is None)
    error: str | None = Field(default=None, exclude_if=lambda value: value is None)
    message: str | None = Field(default=None, exclude_if=lambda value: value is None)
    meta: dict[str, int] | None = Field(default=None, exclude_if=lambda value: value is None)


class EventSubscription(BaseModel):
    """Which events of a thread are sent: of these channels and below these namespaces, after number `since`.

    Without `since` they begin with the newest run.
    """

    model_config = ConfigDict(title="LangGraphEventSubscription")

    channels: list[str] = Field(min_length=1, max_length=50)
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(None, ge=0)
    since: int | None = Field(None, ge=0)

    def has(self, event: ThreadEvent) -> bool:
        """Return whether an event is sent."""
        if event.seq <= (self.since or 0):
            return False
        channel = "input" if event.method == "input.requested" else event.method
        named = f"custom:{event.data['name']}" if channel == "custom" else ""
        if channel not in self.channels and named not in self.channels:
            return False
        return any(self._is_below(event.namespace, root) for root in self.namespaces or [[]])

    def _is_below(self, namespace: Sequence[str], root: Sequence[str]) -> bool:
        """Return whether a namespace is at or below `root`, whose segments may be names without an id."""
        deeper = len(namespace) - len(root)
        is_deep = deeper < 0 or (self.depth is not None and deeper > self.depth)
        pairs = zip(namespace, root, strict=False)
        return not is_deep and all(one in (has, has.partition(":")[0]) for has, one in pairs)


@router.post(
    "/threads/{thread_id}/commands",
    summary="Send a command to a thread",
    responses=error_responses(404, 409, 429),
)
async def send_command(
    thread_id: ThreadPath, command: ThreadCommand, service: ServiceOf, caller: CallerOf, bells: BellsOf
) -> CommandAnswer:
    """Start, answer or retry a run, write to it, or read the state. A run makes the thread if it is new."""
    given = _Command(service, caller.owner, thread_id, command.params)
    try:
        result, accepted = await _obey(given, command.method)
    except ManipleError as error:
        if error.code not in _ERRORS:
            raise
        return CommandAnswer(type="error", id=command.id, error=_ERRORS[error.code], message=str(error))
    meta = None
    if accepted is not None:
        thread = await _get_line(service.store, thread_id, caller.owner)
        ids = [one.run_id for one in await _list_runs(service.store, thread)]
        place = ids.index(accepted.run.run_id) + 1
        meta = {"applied_through_seq": number_of(place, accepted.after)}
        bells.ring(thread.thread_id)
    return CommandAnswer(type="success", id=command.id, result=result, meta=meta)


async def _get_line(store: Store, name: str, owner: str) -> Thread:
    """Return the thread of a client, or the branch of it with the newest run; raises `NotFound`."""
    return await find_newest_line(store, await get_thread(store, name, owner))


async def _list_runs(store: Store, thread: Thread) -> list[RunRecord]:
    """Return all runs of a thread, oldest first."""
    return [run async for run in read_runs(store.runs, thread.thread_id)][::-1]


@dataclass(frozen=True, slots=True)
class _Command:
    service: Service
    owner: str
    name: str
    """The name of the thread."""
    params: Mapping[str, Any]


async def _obey(given: _Command, method: str) -> tuple[dict[str, Any], AcceptedRun | None]:
    """Do what a command says; return its result, and the run that it started or continued."""
    match method:
        case "run.start":
            accepted, not_used = await _start(given)
            named = {"maniple": {"not_used": not_used}} if not_used else {}
            return {"run_id": accepted.run.run_id, **named}, accepted
        case "input.respond":
            accepted = await _respond(given)
            return {"run_id": accepted.run.run_id}, accepted
        case "input.inject":
            return {}, await _inject(given)
        case "state.get":
            thread = await _get_line(given.service.store, given.name, given.owner)
            transcripts = await read_transcripts(given.service.store, thread)
            keys = given.params.get("keys")
            values = make_values(transcripts) if transcripts else {}
            not_used = [name for name in given.params if name != "keys"]
            named = {"maniple": {"not_used": not_used}} if not_used else {}
            return {"values": {key: values[key] for key in values if not keys or key in keys}, **named}, None
        case _:
            raise UnsupportedRequest(f"The command {method!r} is not supported here.")


async def _start(given: _Command) -> tuple[AcceptedRun, list[str]]:
    params: dict[str, Any] = {**given.params, "if_not_exists": "create"}
    if "multitaskStrategy" in params:
        params.setdefault("multitask_strategy", params.pop("multitaskStrategy"))
    try:
        run = LangGraphRun.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidRun(f"params.{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    # A branch is no part of the thread whose events the client follows.
    accepted = await accept_run(given.service, given.owner, given.name, run, makes_branches=False)
    return accepted, run.not_used


async def _respond(given: _Command) -> AcceptedRun:
    if given.params.get("update") or given.params.get("goto"):
        raise UnsupportedRequest("update and goto are not supported here. Send the response alone.")
    entries: Any = given.params.get("responses") or [given.params]
    answers = {
        str(one.get("interrupt_id")): one.get("response")
        for one in cast("Sequence[Mapping[str, Any]]", entries)
    }
    thread = await _get_line(given.service.store, given.name, given.owner)
    transcripts = await read_transcripts(given.service.store, thread)
    return await answer_run(given.service, given.owner, transcripts, answers)


async def _inject(given: _Command) -> AcceptedRun:
    message: Any = given.params.get("message") or {}
    if not isinstance(message.get("content"), str) or not message["content"].strip():
        raise InvalidRun("params.message.content must be a text.")
    thread = await _get_line(given.service.store, given.name, given.owner)
    active = [one for one in await _list_runs(given.service.store, thread) if one.is_unfinished]
    if not active:
        raise RunNotWorking("No run of this thread works. Start one with the message.")
    return await given.service.engine.send_message(active[0].run_id, message["content"], given.owner)


@router.post(
    "/threads/{thread_id}/stream/events",
    summary="Stream the events of a thread",
    response_class=EventSourceResponse,
    responses={**_STREAM, **error_responses(404)},
)
async def stream_thread_events(
    thread_id: ThreadPath,
    wanted: EventSubscription,
    service: ServiceOf,
    caller: CallerOf,
    bells: BellsOf,
) -> EventSourceResponse:
    """Stream the events of the newest run, or those after number `since`, and of all runs that follow."""
    thread = await _get_line(service.store, thread_id, caller.owner)
    return stream_frames(_ThreadStream(service, thread, wanted, bells).frames())


@dataclass(slots=True)
class _ThreadStream:
    """The events of a thread for one client; it goes on when a run has ended."""

    service: Service
    thread: Thread
    wanted: EventSubscription
    bells: ThreadBells
    _run: tuple[int, RunEvents] | None = None
    """The newest followed run: the number of its newest record, and its events."""

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield frames until the client leaves or its key is revoked."""
        with self.service.metrics.client():
            try:
                while True:
                    # Asked for before the runs are read: a bell that rings meanwhile is not missed.
                    bell = asyncio.ensure_future(self.bells.wait(self.thread.thread_id, _IDLE_SECONDS))
                    try:
                        async for frame in self._new_frames():
                            yield frame
                        await bell
                    finally:
                        bell.cancel()
            except ManipleError as error:
                data = {"type": "error", "id": None, "error": "unknown_error", "message": str(error)}
                yield ThreadEvent("error", data).encode("")

    async def _new_frames(self) -> AsyncIterator[bytes]:
        """Yield what the log of the thread has that was not read yet, until all of its runs have ended."""
        runs = await _list_runs(self.service.store, self.thread)
        first = self._run[1].place if self._run else self._first_place(len(runs))
        for place, run in enumerate(runs[first - 1 :], start=first):
            if self._run is None or self._run[1].place != place:
                self._run = 0, await self._open(place, run)
            after, events = self._run
            async with aclosing(follow_run(self.service, AcceptedRun(run, after))) as records:
                async for record in records:
                    self._run = record.number, events
                    for event in events.feed(record):
                        if self.wanted.has(event):
                            yield event.encode(run.run_id)

    def _first_place(self, count: int) -> int:
        """Return the place of the first run that is sent, from 1."""
        if self.wanted.since:
            return max(1, min(self.wanted.since // RUN_NUMBERS, count + 1))
        return max(1, count)

    async def _open(self, place: int, run: RunRecord) -> RunEvents:
        known = await read_transcripts(self.service.store, self.thread)
        earlier = [one for one in known if one.run.created_at < run.created_at]
        plans = [one.plan for one in earlier if one.plan is not None]
        transcript = open_transcript(run, is_first=not earlier)
        return RunEvents(place, transcript, join_messages(earlier), plans[-1] if plans else None)
