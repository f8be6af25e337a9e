"""The response that each request of OpenAI's Responses becomes: accepted, followed and found again.

Source: https://platform.openai.com/docs/api-reference/responses and https://www.openresponses.org
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from uuid import uuid4

from maniple.api.protocols.chat_completions import agent_of
from maniple.api.protocols.chat_request import ChatQuestion, check_parameters, join_newest, read_question
from maniple.api.protocols.compaction import COMPACTION, CompactionReader, expand_items
from maniple.api.protocols.conversations import (
    AnsweredRuns,
    SentConversation,
    name_lost_parts,
    note_delivery,
    submit,
)
from maniple.api.protocols.following import follow_run, make_stopping_error, read_newest
from maniple.api.protocols.functions import name_lost_functions, name_lost_results
from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.api.protocols.responses_request import (
    MAX_ITEMS,
    InputItem,
    ResponseBody,
    as_chat,
    ends_with_results,
    name_messages,
    name_unused,
    other_parameters,
    read_functions,
    read_results,
)
from maniple.api.protocols.responses_view import Json, ResponseName, ResponseView
from maniple.errors import ManipleError
from maniple.runs import AcceptedRun, NotFound, RunRequest
from maniple.scope.client_tools import ClientTool
from maniple.service import Service
from maniple.service.client_tools import AcceptedResults, send_results, send_results_and_text
from maniple.service.deletion import delete_conversation
from maniple.service.sent_files import SentFile, store_files
from maniple.service.thread_views import resolve_thread_id
from maniple.store import RunRecord, Thread


@dataclass(frozen=True, slots=True)
class AskedResponse:
    """A segment of a run, as the response to a request."""

    service: Service
    name: ResponseName
    run: RunRecord
    base: Json
    conversation: SentConversation | None = None
    """The conversation of the request that this answers; None if a response is read again."""

    @property
    def headers(self) -> dict[str, str]:
        """The header that names the run."""
        return {"x-request-id": self.run.run_id}

    async def view(self) -> ResponseView:
        """Return the response as far as it is stored."""
        view = ResponseView(self.name, self.base)
        _ = [*view.begin()]
        after = self.name.after
        while page := await self.service.store.events.read(self.run.run_id, after):
            for record in page:
                _ = [*view.feed(record)]
            after = page[-1].number
        if view.has_ended:
            _ = [*view.end(self.run)]
        return view

    async def events(self, view: ResponseView) -> AsyncGenerator[Json]:
        """Yield the events until the end of the segment; raises the errors of `Engine.events`."""
        for event in view.begin():
            yield event
        accepted = AcceptedRun(self.run, self.name.after)
        async with aclosing(follow_run(self.service, accepted)) as records:
            async for record in records:
                for event in view.feed(record):
                    yield event
                if view.has_ended:
                    break
        if not view.has_ended:
            raise make_stopping_error()
        for event in view.end(await read_newest(self.service, self.run)):
            yield event

    async def deliver(self, view: ResponseView) -> AsyncGenerator[Json]:
        """Yield the events for a client, and store at the end that it has the whole answer to its request."""
        with self.service.metrics.client():
            async with aclosing(self.events(view)) as events:
                async for event in events:
                    yield event
        await self.note_delivery(self.run)

    async def note_delivery(self, run: RunRecord) -> None:
        """Store that the client that asked has the answer; nothing if a response is read again."""
        if self.conversation is not None:
            await note_delivery(self.service.store, run, self.conversation)


@dataclass(frozen=True, slots=True)
class ResponseDesk:
    """Accepts the requests of a caller."""

    service: Service
    owner: str
    answered: AnsweredRuns

    async def accept(
        self, body: ResponseBody, thread_id: str | None, *, is_repeated: bool = False
    ) -> AskedResponse:
        """Accept a request on a thread, or on a new one; raises `UnsupportedParameter` and as `submit`."""
        service, agent = self.service, agent_of(body.model, self.service)
        results = read_results(body)
        functions = read_functions(body).accept(service)
        if results and ends_with_results(body):
            return await self._continue(body, thread_id, results, functions)
        question = await self.read(body)
        if results and (goes_on := await self._continue_with(body, thread_id, results, functions, question)):
            return goes_on
        if not thread_id and question.choices.thread_id:
            if not body.is_stored:
                raise UnsupportedParameter("store", "A stored conversation goes on with store: true.")
            thread_id = await resolve_thread_id(service.store, question.choices.thread_id, self.owner)
        key = "\n".join((body.previous_response_id or "", *question.asked))
        # An unstored run is deleted with its socket: nobody else joins it, and it joins none.
        conversation = SentConversation("responses" if body.is_stored else uuid4().hex, (key,))
        options = question.choices.as_options(agent)
        async with _temporary_thread(service, self.owner, not body.is_stored) as make:
            accepted = await submit(
                service,
                RunRequest(
                    *(question.messages, thread_id or None, options, self.owner),
                    client_tools=functions,
                    metadata=dict(body.metadata or {}),
                ),
                conversation,
                self.answered,
                is_repeated=is_repeated,
                prepare=lambda thread: make(thread, question.files),
            )
        not_used = [*question.not_used, *name_unused(body), *name_lost_functions(accepted.run, functions)]
        not_used += await name_lost_parts(service.store, accepted, question.earlier)
        return self._respond(body, accepted, not_used, conversation)

    async def _continue_with(
        self,
        body: ResponseBody,
        thread_id: str | None,
        results: Mapping[str, str],
        functions: Sequence[ClientTool],
        question: ChatQuestion,
    ) -> AskedResponse | None:
        """Continue the run that waits for these results, with what is asked behind them, if one does."""
        text = join_newest(question.messages, question.files)
        if not text or (not body.is_stored and thread_id is None):
            return None
        sent = await send_results_and_text(self.service, self.owner, results, text, thread_id)
        return self._go_on(body, sent, functions) if sent else None

    async def _continue(
        self,
        body: ResponseBody,
        thread_id: str | None,
        results: Mapping[str, str],
        functions: Sequence[ClientTool],
    ) -> AskedResponse:
        """Continue the run that waits for these results of calls."""
        if not body.is_stored and thread_id is None:
            raise make_previous_missing()  # the run is stored, or belongs to another socket
        sent = await send_results(self.service, self.owner, results, thread_id)
        return self._go_on(body, sent, functions)

    def _go_on(
        self, body: ResponseBody, sent: AcceptedResults, functions: Sequence[ClientTool]
    ) -> AskedResponse:
        accepted = sent.accepted
        lost = [name for name in ("instructions", "metadata", "reasoning") if getattr(body, name)]
        lost += [*check_parameters(other_parameters(body)), *name_lost_results(sent.not_used)]
        not_used = [*lost, *name_unused(body), *name_lost_functions(accepted.run, functions)]
        return self._respond(body, accepted, not_used, None)

    def _respond(
        self,
        body: ResponseBody,
        accepted: AcceptedRun,
        not_used: Sequence[str],
        conversation: SentConversation | None,
    ) -> AskedResponse:
        name = ResponseName(accepted.run.run_id, accepted.after, body.is_stored)
        base = response_base(name, accepted.run) | {
            "model": body.model,
            "previous_response_id": body.previous_response_id,
            "instructions": body.instructions,
            "background": bool(body.background),
            "metadata": body.metadata or {},
            "tool_choice": body.tool_choice or "auto",
            "not_used": [*not_used],
        }
        if not body.is_stored:
            base |= {"store": False, "conversation": None}
        return AskedResponse(self.service, name, accepted.run, base, conversation)

    async def read(self, body: ResponseBody) -> ChatQuestion:
        """Return what a request asks for; raises `UnsupportedParameter`."""
        sent = body.input
        if not isinstance(sent, str) and any(one.type == COMPACTION for one in sent):
            reader, make = CompactionReader(self.service.webhook_key, self.owner), InputItem.model_validate
            items = await asyncio.to_thread(expand_items, sent, reader, make, MAX_ITEMS)
            body = body.model_copy(update={"input": items})
        return read_question(as_chat(body), "reasoning.effort", name_messages(body, sent))

    async def find_previous(self, body: ResponseBody) -> str | None:
        """Return the thread that a request continues; None for a new one; raises `UnsupportedParameter`."""
        if not body.previous_response_id:
            return None
        found = await find_response(self.service, body.previous_response_id, self.owner)
        if found is None:
            raise make_previous_missing()
        return found.run.thread_id


@asynccontextmanager
async def _temporary_thread(
    service: Service, owner: str, is_temporary: bool
) -> AsyncGenerator[Callable[[str | None, Sequence[SentFile]], Awaitable[str | None]]]:
    """Yield what puts files into the thread of a run, or into a new one.

    A temporary one is marked as such before its run is accepted, so that it ends with this process whenever
    that is killed; it is deleted if this context fails.
    """
    made: list[str] = []

    async def prepare(thread_id: str | None, files: Sequence[SentFile]) -> str | None:
        if thread_id is None and is_temporary:
            now = time.time()
            thread = Thread(str(uuid4()), owner, "", now, now)
            await service.store.threads.create(thread, temporary_of=service.store.process)
            thread_id = thread.thread_id
            made.append(thread_id)
        return await store_files(service, owner, thread_id, files)

    try:
        yield prepare
    except ManipleError:
        for one in made:
            await delete_conversation(service, one, owner)
        raise


async def find_response(service: Service, text: str, owner: str) -> AskedResponse | None:
    """Return a response by its id; None if there is none of this owner."""
    name = ResponseName.of(text)
    if name is not None:
        with suppress(NotFound):
            run = await service.engine.status(name.run_id, owner)
            return AskedResponse(service, name, run, response_base(name, run))
    return None


def make_previous_missing() -> UnsupportedParameter:
    """Return the error of a request that continues a response which cannot be found."""
    return UnsupportedParameter(
        "previous_response_id",
        "There is no such response. Send the whole conversation, without previous_response_id.",
        code="previous_response_not_found",
    )


def response_base(name: ResponseName, run: RunRecord) -> Json:
    """Return the fields of a response that do not change, with the defaults of those that have no effect."""
    request = RunRequest.of(run)
    return {
        "id": str(name),
        "object": "response",
        "created_at": int(run.created_at),
        "model": "maniple",
        "previous_response_id": None,
        "instructions": None,
        "tools": [{"type": "function", **asdict(one), "strict": True} for one in request.client_tools],
        "tool_choice": "auto",
        "truncation": "disabled",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "temperature": 1.0,
        "reasoning": {"effort": request.options.effort or None, "summary": None},
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": request.metadata,
        "safety_identifier": None,
        "prompt_cache_key": None,
        "conversation": {"id": run.thread_name},
        "not_used": [],
    }
