"""AG-UI 1.0: the team as an agent of a user interface.

Source: https://docs.ag-ui.com
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Message,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    UserMessage,
)
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.error_responses import error_responses
from maniple.api.protocols.ag_ui_events import AgUiEvents, describe_interrupt, describe_usage
from maniple.api.protocols.ag_ui_input import (
    AskedMessage,
    name_unused,
    read_answer,
    read_input,
    read_results,
    read_tools,
)
from maniple.api.protocols.conversations import AnsweredOf, SentConversation, submit
from maniple.api.protocols.following import follow_run, read_ended, stream_frames
from maniple.api.protocols.functions import find_calls, name_lost_functions, name_lost_results
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.events import ANSWERING_AGENTS, PlanChanged
from maniple.runs import AcceptedRun, RunNotWaiting, RunRequest
from maniple.scope.client_tools import ClientCall
from maniple.service import Service
from maniple.service.client_tools import AcceptedResults, send_results, send_results_and_text
from maniple.service.sent_files import store_files
from maniple.service.thread_views import read_thread_detail, resolve_thread_id
from maniple.store import RunRecord, read_event_pages

router = keyed_router("ag-ui", is_protocol=True)
PROTOCOL_VERSION = "1.0"
_STREAM: dict[int | str, dict[str, Any]] = {200: describe_stream("AG-UI's events as server-sent events")}


@router.post(
    "/ag-ui",
    summary="Ask the team, as an AG-UI client asks an agent",
    response_class=EventSourceResponse,
    responses={**_STREAM, **error_responses(404, 409, 429)},
)
async def run_agent(
    given: RunAgentInput, service: ServiceOf, caller: CallerOf, answered: AnsweredOf
) -> EventSourceResponse:
    """Ask the team with the newest message, or answer the interrupts that `resume` names.

    `forwardedProps` has the options of the run, such as `depth`. The run does not end when the client
    disconnects: an input with the same `runId` joins it. Without messages, the conversation is sent.
    """
    owner = caller.owner
    thread_id = await resolve_thread_id(service.store, given.thread_id, owner)
    tools, results = read_tools(given, service), read_results(given)
    asked = read_input(given) if not results or isinstance(given.messages[-1], UserMessage) else None
    accepted: AcceptedRun | None
    lost: list[str] = []
    sent = await _answer_with(service, thread_id, owner, results, asked) if asked and results else None
    if sent is not None:
        accepted, lost = sent.accepted, name_lost_results(sent.not_used)
    elif asked is None and (given.resume or results):
        accepted, lost = await _answer(service, thread_id, owner, given.resume or (), results)
    elif asked is None:
        accepted = await _newest_open(service, thread_id, owner)
    else:
        accepted = await submit(
            service,
            RunRequest(
                *([asked.message], thread_id, asked.choices.as_options(""), owner), client_tools=tools
            ),
            SentConversation("ag-ui", (f"{thread_id}\n{given.run_id}",)),
            answered,
            is_repeated=True,
            prepare=lambda thread: store_files(service, owner, thread, asked.files),
        )
        lost += name_lost_results([*results])
    lost += name_lost_functions(accepted.run, tools) if accepted else ["tools"] if tools else []
    not_used = [*name_unused(given, asked), *lost]
    stream = _Stream(service, given, accepted, (thread_id, owner), not_used)
    return stream_frames(stream.frames(needs_messages=not given.messages))


async def _answer_with(
    service: Service, thread_id: str, owner: str, results: Mapping[str, str], asked: AskedMessage
) -> AcceptedResults | None:
    """Continue the run that waits for these results, with what is asked behind them; None if none does."""
    content: Any = asked.message.content
    if asked.files or not isinstance(content, str):
        return None
    return await send_results_and_text(service, owner, results, content, thread_id)


async def _answer(
    service: Service,
    thread_id: str,
    owner: str,
    entries: Sequence[ResumeEntry],
    results: Mapping[str, str],
) -> tuple[AcceptedRun, list[str]]:
    """Answer the interrupts of the run that waits on a thread, after the calls whose results are given.

    Return the run, and the names of the results that it has not taken.
    """
    sent = await send_results(service, owner, results, thread_id) if results else None
    first, lost = (sent.accepted, name_lost_results(sent.not_used)) if sent else (None, [])
    if first is not None and not entries:
        return first, lost
    waiting = await service.store.runs.list_interrupted(thread_id)
    run = next((one for one in waiting if one.owner == owner), None)
    if run is None:
        raise RunNotWaiting("No run of this conversation waits for an answer.")
    for entry in entries:
        accepted = await service.engine.resume(
            run.run_id, read_answer(entry), interrupt_id=entry.interrupt_id, owner=owner
        )
        first = first or accepted
    assert first is not None  # the caller has checked that there is an entry
    return first, lost


async def _newest_run(service: Service, thread_id: str, owner: str) -> RunRecord | None:
    runs = await service.store.runs.list_by_thread(thread_id, 1)
    return runs[0] if runs and runs[0].owner == owner else None


async def _newest_open(service: Service, thread_id: str, owner: str) -> AcceptedRun | None:
    """Return the whole newest run if it is at work, or waits for an answer that the client has yet to see."""
    run = await _newest_run(service, thread_id, owner)
    is_open = run is not None and (run.is_unfinished or run.status == "interrupted")
    return AcceptedRun(run, 0) if run and is_open else None


@dataclass(slots=True)
class _Stream:
    """The events of one request."""

    service: Service
    given: RunAgentInput
    accepted: AcceptedRun | None
    thread: tuple[str, str]
    """The id of the conversation, and its owner."""
    not_used: Sequence[str]

    async def frames(self, *, needs_messages: bool) -> AsyncIterator[bytes]:
        """Yield the events as frames of server-sent events."""
        with self.service.metrics.client():
            async for event in self._events(needs_messages=needs_messages):
                yield f"data: {event.model_dump_json(by_alias=True)}\n\n".encode()

    async def _events(self, *, needs_messages: bool) -> AsyncIterator[BaseEvent]:
        run = self.accepted.run if self.accepted else None
        metadata = {"runId": run.run_id if run else None, "notUsed": [*self.not_used]}
        yield RunStartedEvent(
            thread_id=self.given.thread_id,
            run_id=self.given.run_id,
            protocol_version=PROTOCOL_VERSION,
            metadata={"maniple": metadata},
        )
        if needs_messages:
            yield MessagesSnapshotEvent(messages=await self._read_messages())
        if self.accepted is None:
            if newest := await _newest_run(self.service, *self.thread):
                for event in (await self._restore(newest, newest.run_id)).begin():
                    yield event
            yield self._finished(RunFinishedSuccessOutcome(), None)
            return
        async for event in self._run_events(self.accepted):
            yield event

    async def _run_events(self, accepted: AcceptedRun) -> AsyncIterator[BaseEvent]:
        answer_id = f"{accepted.run.run_id}-answer-{accepted.after}"
        found = await self._restore(accepted.run, answer_id, accepted.after)
        for event in found.begin():
            yield event
        try:
            async with aclosing(follow_run(self.service, accepted)) as records:
                async for record in records:
                    for event in found.feed(record):
                        yield event
            ends = [*self._last_events(found, await read_ended(self.service, accepted.run))]
        except ManipleError as error:
            ends = [*found.end(), RunErrorEvent(message=str(error), code=error.code)]
        for event in ends:
            yield event

    async def _restore(self, run: RunRecord, answer_id: str, until: int | None = None) -> AgUiEvents:
        """Return the state of a run after its record `until`, None: after its last one."""
        functions = [one.name for one in RunRequest.of(run).client_tools]
        found, plans = AgUiEvents(answer_id, functions), {PlanChanged.type}
        if until == 0:
            return found
        async for page in read_event_pages(self.service.store.events, run.run_id, types=plans):
            for record in page:
                if until is None or record.number <= until:
                    found.restore(record)
        return found

    def _last_events(self, found: AgUiEvents, run: RunRecord) -> Iterator[BaseEvent]:
        view = found.view
        if rest := found.pieces.unsent:
            yield from found.answer(rest)
        yield from found.end()
        usage = describe_usage(view)
        calls = find_calls(view.pauses) if run.status == "interrupted" else []
        for call in calls:
            yield from found.call_client(call)
        pauses = [describe_interrupt(one) for one in view.pauses if ClientCall.of(one.payload) is None]
        if run.status == "interrupted" and pauses:
            yield self._finished(RunFinishedInterruptOutcome(interrupts=pauses), run, usage)
        elif run.status == "cancelled":
            yield self._finished(RunFinishedCancelledOutcome(), run, usage)
        elif run.status == "failed" and not view.has_answer:
            message = view.failure.message if view.failure else run.error or "The run failed."
            yield RunErrorEvent(message=message, code=run.error_code or "internal", usage=usage)
        else:
            yield self._finished(RunFinishedSuccessOutcome(), run, usage)

    def _finished(self, outcome: Any, run: RunRecord | None, usage: Any = None) -> RunFinishedEvent:
        result = {"status": run.status, "runId": run.run_id} if run else None
        return RunFinishedEvent(
            thread_id=self.given.thread_id,
            run_id=self.given.run_id,
            outcome=outcome,
            result=result,
            usage=usage,
        )

    async def _read_messages(self) -> list[Message]:
        """Return the conversation as its user saw it; that of a thread that does not exist is empty."""
        thread_id, owner = self.thread
        thread = await self.service.store.threads.get(thread_id, owner)
        if thread is None:
            return []
        detail = await read_thread_detail(self.service.store, self.service.runtime.graph, thread)
        messages: list[Message] = []
        for place, one in enumerate(detail.messages):
            text = one.content if isinstance(one.content, str) else _text_of(one.content)
            if one.name is None and one.role == "user":
                messages.append(UserMessage(id=f"{thread_id}-{place}", content=text))
            elif one.role == "assistant" and (one.name in ANSWERING_AGENTS or one.name is None):
                messages.append(AssistantMessage(id=f"{thread_id}-{place}", content=text))
        if self.accepted and self.accepted.run.started_at is None:
            asked = RunRequest.of(self.accepted.run).messages[-1]  # the conversation has it when it begins
            messages.append(UserMessage(id=f"{thread_id}-{len(detail.messages)}", content=asked.text))
        while self.accepted and messages and messages[-1].role == "assistant":
            messages.pop()  # the events of the run have it, as a text or as an interrupt
        return messages


def _text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(one["text"]) for one in parts if one.get("text"))
