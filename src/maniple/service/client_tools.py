"""Functions of clients: which of them a team can be given, and the results of their calls."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maniple.agents.profiles import profile_of
from maniple.app import Runtime
from maniple.config.mcp_settings import is_of_server
from maniple.errors import ManipleError
from maniple.events import RunInterrupted, StepInterrupted, event_of
from maniple.graph.handoff import HANDOFF
from maniple.runs import AcceptedRun, NotFound, RunNotWaiting
from maniple.runs.stored_inputs import read_inputs
from maniple.scope.client_tools import (
    ADDED_KEY,
    RESULT_KEY,
    ClientCall,
    ClientTool,
    InvalidClientTool,
    check_free_names,
    read_client_tools,
    run_of_call,
)
from maniple.scope.inputs import Resume, Retry, StepAnswer
from maniple.service.opening import Service
from maniple.service.views import read_interrupts
from maniple.store import RunRecord, Store, read_event_pages
from maniple.text import shorten
from maniple.tools.registry import TOOLS

_RESERVED = (HANDOFF, "ask_user", "schedule_run")
"""The tools of the coordinator."""
_SHOWN_CHARACTERS = 120


class UnknownCall(ManipleError):
    """A result is that of no call of the client's runs."""

    code = "unknown_call"


@dataclass(frozen=True, slots=True)
class AcceptedResults:
    """The run that goes on with the results of calls."""

    accepted: AcceptedRun
    not_used: Sequence[str]
    """The ids of the calls that had been answered otherwise before."""


@dataclass(frozen=True, slots=True)
class _StoredAnswer:
    """The answer to a question of a run."""

    answer: Any
    after: int
    """The number of the event before the segment in which it came."""


class CallsWaiting(ManipleError):
    """A new message cannot be taken before the results of calls are sent."""

    code = "calls_waiting"


def accept_client_tools(
    given: Sequence[Mapping[str, Any]], runtime: Runtime, model: str = ""
) -> tuple[ClientTool, ...]:
    """Return the functions that a request describes, for a run with the basic model or with `model`.

    Raises `InvalidClientTool` and, for a model that is not configured, `UnconfiguredModel`.
    """
    tools = read_client_tools(given)
    if not tools:
        return ()
    models = runtime.models.with_basic(model) if model else runtime.models
    if profile_of(models.get("basic")).name == "compact":
        raise InvalidClientTool(
            "", "The team's model is too small to call functions. Configure a larger one."
        )
    taken = {*TOOLS.names, *runtime.settings.own_tool_names, *runtime.offer.tool_names, *_RESERVED}
    servers = runtime.settings.mcp.servers
    check_free_names(tools, lambda name: name in taken or is_of_server(name, servers))
    return tools


async def read_waiting_calls(store: Store, run: RunRecord) -> list[ClientCall]:
    """Return the calls that an interrupted run waits for, in their order; none for any other run."""
    calls = (ClientCall.of(one.payload) for one in await read_interrupts(store, run))
    return [one for one in calls if one is not None]


async def refuse_new_message(store: Store, thread_id: str, owner: str) -> None:
    """Raise `CallsWaiting` if a run of the thread waits for results of calls: a message is none of them."""
    for run in await store.runs.list_interrupted(thread_id):
        if run.owner == owner and (calls := await read_waiting_calls(store, run)):
            named = ", ".join(f"{one.call_id} ({one.name})" for one in calls)
            raise CallsWaiting(f"The conversation waits for the results of {named}. Send these first.")


async def send_results(
    service: Service, owner: str, results: Mapping[str, Any], thread_id: str | None = None
) -> AcceptedResults:
    """Continue the run that waits for calls with their results, by the ids of the calls.

    Results that it has already are not taken again, so that a request can be repeated, also at the same time.
    The events of the result are those since the run went on with the last of them. Raises `UnknownCall`, also
    for a run of another thread than `thread_id`, if that is given, and as `Engine.resume`.
    """
    run = await _find_run(service, owner, results)
    if thread_id is not None and run.thread_id != thread_id:
        raise _make_unknown(results)
    run_id = run.run_id
    asked = await _read_asked(service.store, run_id)
    if unknown := [one for one in results if one not in asked]:
        raise _make_unknown(unknown)
    by_question = {asked[call_id]: result for call_id, result in results.items()}
    answers = await _read_answers(service.store, run_id, by_question)
    for question, result in by_question.items():
        if question in answers:
            continue
        try:
            run = (await service.engine.resume(run_id, result, interrupt_id=question, owner=owner)).run
        except RunNotWaiting:
            answers = await _read_answers(service.store, run_id, by_question)
            if question not in answers:
                raise
            run = await service.engine.status(run_id, owner)  # the same request at the same time was faster
    answers = await _read_answers(service.store, run_id, by_question)
    after = max(one.after for one in answers.values())
    others = [
        call_id
        for call_id, result in results.items()
        if answers[asked[call_id]].answer != service.redactor.value(result)
    ]
    return AcceptedResults(AcceptedRun(run, after), others)


async def send_results_and_text(
    service: Service, owner: str, results: Mapping[str, Any], text: str, thread_id: str | None = None
) -> AcceptedResults | None:
    """Continue the run that waits for calls with their results, and with what the user says beside them.

    The member that called has the text with the newest result, as a model has both at once: a message to the
    run could come after its end. Return None where no run waits for the results, as with those of an earlier
    answer: then the text is a question like any other. Raises as `Engine.resume`.
    """
    try:
        run = await _find_run(service, owner, results)
    except UnknownCall:
        return None
    asked = await _read_asked(service.store, run.run_id)
    if (thread_id is not None and run.thread_id != thread_id) or any(one not in asked for one in results):
        return None
    *_, newest = results
    joined = {**results, newest: {RESULT_KEY: results[newest], ADDED_KEY: text}}
    answers = await _read_answers(service.store, run.run_id, [asked[one] for one in results])
    known = answers.get(asked[newest])
    if known is not None and known.answer != service.redactor.value(joined[newest]):
        return None
    return await send_results(service, owner, joined)


async def _find_run(service: Service, owner: str, results: Mapping[str, Any]) -> RunRecord:
    """Return the run that the ids of all calls name; raises `UnknownCall`."""
    run_ids = {run_of_call(one) for one in results}
    run_id = run_ids.pop() if len(run_ids) == 1 else None
    if run_id is None:
        raise _make_unknown(results)
    try:
        return await service.engine.status(run_id, owner)
    except NotFound as error:
        raise _make_unknown(results) from error


async def _read_asked(store: Store, run_id: str) -> dict[str, str]:
    """Return the ids of a run's questions with which the client was asked, by those of the calls."""
    asked: dict[str, str] = {}
    types = {RunInterrupted.type, StepInterrupted.type}
    async for page in read_event_pages(store.events, run_id, types=types):
        for event in map(event_of, page):
            if isinstance(event, RunInterrupted) and (call := ClientCall.of(event.payload)):
                asked[call.call_id] = event.interrupt_id
    return asked


async def _read_answers(store: Store, run_id: str, questions: Collection[str]) -> dict[str, _StoredAnswer]:
    """Return the answers to those of a run's questions that have one, by the ids of the questions."""
    answers, after = dict[str, _StoredAnswer](), 0
    for one in await read_inputs(store.inputs, run_id):
        if isinstance(one.content, Resume | Retry):
            after = one.content.after
        if isinstance(one.content, Resume | StepAnswer) and one.content.interrupt_id in questions:
            answers[one.content.interrupt_id] = _StoredAnswer(one.content.answer, after)
    return answers


def _make_unknown(call_ids: Mapping[str, Any] | Sequence[str]) -> UnknownCall:
    named = shorten(", ".join(call_ids), _SHOWN_CHARACTERS)
    return UnknownCall(
        f"No run waits for results of {named}. Send each result with the id of its call, and the "
        "results of one answer together."
    )
