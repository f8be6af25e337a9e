"""Accepting a run of the LangGraph API: a message, answers to interrupts, or a retry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, ToolMessage

from maniple.api.protocols.conversations import find_segment_start
from maniple.api.protocols.langgraph.assistants import UnsupportedRequest, find_agent
from maniple.api.protocols.langgraph.interrupts import split_answers
from maniple.api.protocols.langgraph.run_request import InvalidRun, LangGraphRun, read_messages
from maniple.api.protocols.langgraph.thread_states import (
    StatePlace,
    StateTree,
    find_newest_line,
    read_state_tree,
)
from maniple.api.protocols.langgraph.transcripts import RunTranscript, read_transcripts
from maniple.api.protocols.run_choices import RunChoices
from maniple.errors import ManipleError
from maniple.runs import AcceptedRun, NotFound, RunNotWaiting, RunRequest
from maniple.runs.event_log import newest_number
from maniple.service import Service
from maniple.service.client_tools import send_results_and_text
from maniple.service.sent_files import store_files
from maniple.service.thread_views import resolve_thread_id
from maniple.store import Thread


@dataclass(frozen=True, slots=True)
class _Target:
    """The line of a thread on which a run goes on, and what was said in it; without a thread, a new one."""

    service: Service
    owner: str
    thread_id: str | None
    transcripts: Sequence[RunTranscript] = ()
    thread: Thread | None = None
    """The thread that the request names, if it exists."""

    @property
    def newest(self) -> RunTranscript | None:
        """The newest run."""
        return self.transcripts[-1] if self.transcripts else None


async def accept_run(
    service: Service, owner: str, name: str | None, given: LangGraphRun, *, makes_branches: bool = True
) -> AcceptedRun:
    """Accept what a client sent to a thread, or to a new one without a `name`.

    The same message, sent again with its id while it is the newest, gets the run that it became. From an
    earlier checkpoint, the question that followed it is asked again, on a branch. Raises `NotFound`,
    `InvalidRun`, `UnsupportedRequest` and the errors of `Engine.submit`, `resume`, `retry` and `branch_run`.
    """
    given.refuse_unsupported()
    await require_webhook(service, owner, given.webhook)
    agent = find_agent(given.assistant_id, service)
    target = await _find_target(service, owner, name, makes=given.if_not_exists == "create")
    newest = target.newest
    if given.asked_checkpoint not in (None, newest.run.run_id if newest else None):
        if not makes_branches:
            raise UnsupportedRequest("A command goes on from the newest checkpoint only.")
        history, place = await _find_place(target, given.asked_checkpoint or "")
        if not place.is_newest:
            return await _ask_again(target, history, place, given, agent)
        target = replace(target, thread_id=place.line.thread.thread_id, transcripts=place.transcripts)
        newest = target.newest
    if given.command is not None and given.command.is_end:
        return await _end_waiting(service, owner, target.transcripts)
    if given.command is not None:
        return await answer_run(service, owner, target.transcripts, given.command.resume)
    if given.input is None:
        if newest is None or newest.run.thread_id != target.thread_id:
            raise InvalidRun("input is missing: send messages, or command.resume to answer an interrupt.")
        return await service.engine.retry(newest.run.run_id, owner)
    return await _ask(target, given.input, given, agent)


async def _ask(target: _Target, asked: Mapping[str, Any], given: LangGraphRun, agent: str) -> AcceptedRun:
    """Ask the messages of an input on the thread, or answer what it waits for with them."""
    service, owner = target.service, target.owner
    messages, files = read_messages(asked)
    if (known := await _find_repeated(target, messages)) is not None:
        return known
    if (goes_on := await _send_results(target, messages)) is not None:
        return goes_on
    thread_id = await store_files(service, owner, target.thread_id, files)
    options = given.read_options().as_options(agent)
    when_busy = given.multitask_strategy or "enqueue"
    request = RunRequest(messages, thread_id, options, owner, when_busy=when_busy)
    return await service.engine.submit(replace(request, metadata=given.metadata or {}))


async def _send_results(target: _Target, messages: Sequence[BaseMessage]) -> AcceptedRun | None:
    """Continue the run that waits for the results before the newest message; None if there are none."""
    *before, newest = messages
    last = takewhile(lambda one: isinstance(one, ToolMessage), reversed(before))
    results = {one.tool_call_id: one.text for one in last if isinstance(one, ToolMessage)}
    if not results or not isinstance(newest.content, str):
        return None
    given = dict(reversed(results.items()))
    sent = await send_results_and_text(target.service, target.owner, given, newest.text, target.thread_id)
    return sent.accepted if sent else None


async def _find_place(target: _Target, checkpoint_id: str) -> tuple[StateTree, StatePlace]:
    """Return the history of a thread and a place in it; raises `InvalidRun`."""
    if target.thread is None:
        raise InvalidRun("A new thread has no checkpoint yet. Leave it out.")
    history = await read_state_tree(target.service.store, target.thread)
    try:
        return history, history.find(checkpoint_id)
    except NotFound as error:
        raise InvalidRun(str(error)) from error


async def _ask_again(
    target: _Target, history: StateTree, place: StatePlace, given: LangGraphRun, agent: str
) -> AcceptedRun:
    """Ask the question after an earlier place again, on a branch, with another text if the input has one."""
    if given.command is not None:
        raise UnsupportedRequest("A command goes on from the newest state. Leave the checkpoint out.")
    run = place.run if place.is_question else history.find_next(place)
    if run is None or place.is_question == (given.input is not None):
        raise UnsupportedRequest(
            "From an earlier checkpoint, a question is asked again: as it was from that after the question, "
            "without an input; with another text from that before it, with one message as the input."
        )
    text = ""
    if given.input is not None:
        messages, files = read_messages(given.input)
        if len(messages) > 1 or files or not isinstance(messages[0].content, str):
            raise UnsupportedRequest(
                "A question that is asked again from an earlier checkpoint takes one message of text alone: "
                "it has the pictures and files of the first time."
            )
        text = messages[0].text
    chosen, choices = RunRequest.of(run), given.read_options()
    if choices != RunChoices() or agent != chosen.options.agent:
        chosen = replace(chosen, options=choices.as_options(agent))
    chosen = replace(chosen, metadata=given.metadata or {})
    return await target.service.engine.branch_run(run.run_id, text, target.owner, chosen)


async def accept_runs(service: Service, owner: str, given: Sequence[LangGraphRun]) -> list[AcceptedRun]:
    """Accept runs, each on a new thread, all of them or none; raises what `accept_run` does."""
    accepted: list[AcceptedRun] = []
    try:
        for one in given:
            accepted.append(await accept_run(service, owner, None, one))
    except ManipleError:
        for one in accepted:
            await service.engine.cancel(one.run.run_id, owner)
        raise
    return accepted


async def require_webhook(service: Service, owner: str, url: str | None) -> None:
    """Raise `UnsupportedRequest` for an address that is not sent the ends of the owner's runs anyway.

    A webhook has a secret with which its receiver checks the messages, and an address that was checked: so it
    is made before a run names it.
    """
    if not url:
        return
    for one in await service.store.webhooks.list(owner):
        if one.url == url and not one.disabled and "completed" in one.statuses:
            return
    raise UnsupportedRequest(
        "webhook is not an address of a webhook of this key that gets completed runs. Make it with "
        "POST /api/webhooks, which returns the secret of its signatures; or leave it out."
    )


async def answer_run(
    service: Service, owner: str, transcripts: Sequence[RunTranscript], resume: object
) -> AcceptedRun:
    """Answer what a thread waits for; raises `RunNotWaiting` and the errors of `Engine.resume`."""
    waiting = _find_waiting(transcripts)
    first: AcceptedRun | None = None
    for interrupt_id, answer in split_answers(resume, [*waiting.pauses.values()]):
        accepted = await service.engine.resume(
            waiting.run.run_id, answer, interrupt_id=interrupt_id, owner=owner
        )
        first = first or accepted
    assert first is not None  # there is at least one answer
    return first


async def _end_waiting(service: Service, owner: str, transcripts: Sequence[RunTranscript]) -> AcceptedRun:
    """Cancel the run of a thread that waits for an answer; what follows is its end."""
    waiting = _find_waiting(transcripts).run
    newest = await newest_number(service.store.events, waiting.run_id)
    return AcceptedRun(await service.engine.cancel(waiting.run_id, owner), newest)


def _find_waiting(transcripts: Sequence[RunTranscript]) -> RunTranscript:
    """Return the newest run that waits for an answer; raises `RunNotWaiting`."""
    for one in reversed(transcripts):
        if one.run.status == "interrupted":
            return one
    for one in reversed(transcripts):  # a step may ask while others work
        if one.pauses and one.run.is_unfinished:
            return one
    raise RunNotWaiting("No run of this thread waits for an answer.")


async def _find_target(service: Service, owner: str, name: str | None, *, makes: bool) -> _Target:
    if name is None:
        return _Target(service, owner, None)
    thread_id = await resolve_thread_id(service.store, name, owner)
    thread: Thread | None = await service.store.threads.get(thread_id, owner)
    if thread is None:
        if not makes:
            raise NotFound("There is no such thread. Make it, or send if_not_exists: create.")
        return _Target(service, owner, thread_id)
    line = await find_newest_line(service.store, thread)
    return _Target(service, owner, line.thread_id, await read_transcripts(service.store, line), thread)


async def _find_repeated(target: _Target, messages: list[BaseMessage]) -> AcceptedRun | None:
    """Return the run that the newest message has become already; give it an id if it has none."""
    message = messages[-1]
    if not message.id:
        message.id = str(uuid4())
        return None
    for transcript in target.transcripts:
        if message.id in (transcript.question_id, *(one["id"] for one in transcript.messages)):
            if transcript is not target.newest or message.id != transcript.question_id:
                raise UnsupportedRequest(
                    "An earlier message cannot be replaced. Ask again on a branch of its run."
                )
            start = await find_segment_start(target.service.store, transcript.run.run_id)
            return AcceptedRun(transcript.run, start)
    return None
