"""Which conversation a request without a thread's id belongs to: clients send the whole history each time."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Header, Request

from maniple.events import RunStarted
from maniple.runs import AcceptedRun, RunRequest
from maniple.scope.client_tools import run_of_call
from maniple.service.client_tools import refuse_new_message
from maniple.store import RunRecord, Store, Thread, read_event_pages, read_runs
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from collections.abc import Generator

    from maniple.api.protocols.chat_request import EarlierPart
    from maniple.service import Service

KEPT_SECONDS = 600
"""How long after its end a run's answer is given to the request that was cut off before it."""


@dataclass(slots=True)
class AnsweredRuns:
    """The runs whose answers are being sent by this process, with the number of clients."""

    _counts: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def answering(self, run_id: str) -> "Generator[None]":
        """Count a client for the time of this context."""
        self._counts[run_id] += 1
        try:
            yield
        finally:
            self._counts[run_id] -= 1
            self._counts += Counter()  # without those that are 0

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._counts


async def _answered_of(request: Request) -> AnsweredRuns:
    # Asynchronous without waiting: FastAPI runs other dependencies in a thread.
    return request.app.state.answered_runs


AnsweredOf = Annotated[AnsweredRuns, Depends(_answered_of)]
Retries = Annotated[int, Header(alias="x-stainless-retry-count", ge=0, le=1_000, include_in_schema=False)]
"""How often OpenAI's client has sent this request before."""


async def name_lost_parts(store: Store, accepted: AcceptedRun, earlier: "Sequence[EarlierPart]") -> list[str]:
    """Return the places of those parts of earlier turns that no run of the conversation had."""
    if not earlier:
        return []
    runs = [one async for one in read_runs(store.runs, accepted.run.thread_id)]
    had = {one.run_id for one in runs if not (accepted.is_new and one.created_at >= accepted.run.created_at)}
    return [one.place for one in earlier if not (run_of_call(one.call_id) in had if one.call_id else had)]


@dataclass(frozen=True, slots=True)
class SentConversation:
    """The messages of the user that a client has sent, oldest first, as a key to the thread they belong to.

    Only they count: clients shorten and rewrite the answers that they send back.
    """

    protocol: str
    asked: Sequence[str]

    @property
    def unanswered(self) -> str:
        """The digest of a conversation whose newest message has no delivered answer yet."""
        return self._digest("asked", self.asked)

    @property
    def answered(self) -> str:
        """The digest of a conversation whose newest answer was delivered whole."""
        return self._digest("answered", self.asked)

    @property
    def before(self) -> "SentConversation | None":
        """The conversation without its newest message; None if there was none."""
        return replace(self, asked=self.asked[:-1]) if len(self.asked) > 1 else None

    def _digest(self, state: str, asked: Sequence[str]) -> str:
        text = json.dumps(fix_surrogates([self.protocol, state, *asked]))
        return hashlib.sha256(text.encode()).hexdigest()


async def submit(
    service: "Service",
    request: RunRequest,
    conversation: SentConversation,
    answered: AnsweredRuns,
    *,
    is_repeated: bool,
    prepare: Callable[[str | None], Awaitable[str | None]],
) -> AcceptedRun:
    """Accept a request, or return the run that it already became.

    A client that was cut off sends the same request again: it gets the run of the first one, if nobody else
    reads its answer, or if the client says that it repeats itself (`is_repeated`). `prepare` is given the
    thread of a new run, or None, and returns it, or a new one. Raises `CallsWaiting` and the errors of
    `Engine.submit`.
    """
    store, owner = service.store, request.owner
    begun = await _find_begun(store, owner, conversation)
    if begun is not None and (is_repeated or begun.run_id not in answered):
        return AcceptedRun(begun, await find_segment_start(store, begun.run_id))
    async with _continued_thread(store, request, conversation) as thread_id:
        if thread_id is not None:
            await refuse_new_message(store, thread_id, owner)
        thread_id = await prepare(thread_id)
        accepted = await service.engine.submit(replace(request, thread_id=thread_id))
    await store.threads.touch(accepted.run.thread_id, cut_history=conversation.unanswered)
    return accepted


async def note_delivery(store: Store, run: RunRecord, conversation: SentConversation) -> None:
    """Store that the client has the whole answer: the next request continues the thread, or asks anew."""
    await store.threads.touch(run.thread_id, cut_history=conversation.answered)


async def _find_begun(store: Store, owner: str, conversation: SentConversation) -> RunRecord | None:
    """Return the run of an earlier request with the same messages, whose answer was not delivered."""
    thread = await store.threads.take_history(owner, conversation.unanswered)
    if thread is None:
        return None
    await store.threads.touch(thread.thread_id, cut_history=conversation.unanswered)
    runs = await store.runs.list_by_thread(thread.thread_id, 1)
    if not runs or (runs[0].ended_at or time.time()) < time.time() - KEPT_SECONDS:
        return None
    return runs[0]


@asynccontextmanager
async def _continued_thread(
    store: Store, request: RunRequest, conversation: SentConversation
) -> AsyncGenerator[str | None]:
    """Find the thread that a request continues; it can be found again if this context fails."""
    before = conversation.before
    if request.thread_id is not None or before is None:
        yield request.thread_id
        return
    thread: Thread | None = None
    digest = ""
    for digest in (before.answered, before.unanswered):
        if thread := await store.threads.take_history(request.owner, digest):
            break
    try:
        yield thread.thread_id if thread else None
    except Exception:
        if thread is not None:
            await store.threads.touch(thread.thread_id, cut_history=digest)
        raise


async def find_segment_start(store: Store, run_id: str) -> int:
    """Return the number of the event before the newest segment of a run."""
    start = 0
    async for page in read_event_pages(store.events, run_id, types={RunStarted.type}):
        start = page[-1].number - 1
    return max(start, 0)
