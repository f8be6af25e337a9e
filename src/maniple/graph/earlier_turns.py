"""The record of earlier turns: folded when the next request begins, whatever way the runs before it ended."""

from collections.abc import Collection, Sequence
from typing import cast

from langchain_core.messages import BaseMessage

from maniple.agents.middleware.fencing import fence_untrusted, remove_fences
from maniple.agents.task import EarlierTurn, ThreadHistory
from maniple.agents.turn_record import TurnNote, TurnRecord, TurnResult, describe_inputs
from maniple.graph.plan import PlanProgress, TrackedStep
from maniple.graph.state import (
    ANSWER_MARK,
    PrivateState,
    State,
    answer_of,
    is_reply,
    is_report,
    is_users,
    private_of,
    progress_of,
    report_text,
)
from maniple.scope.inputs import Cancel, EndedRun, Message, ReceivedInput, Retry
from maniple.scope.run_scope import RunScope, run_scope
from maniple.text import shorten
from maniple.tools.items import MIN_RESULT_CHARACTERS, MirroredText, report_path, result_path

ALWAYS_SHOWN_TURNS = 20
"""Older turns may only be counted in a prompt, so that each of them has a file, in which it can be found."""
MAX_TURNS = 200
"""The number of records that are stored; each is of a turn in which the user decided something."""
_MAX_FOLDED = 50
_HEADING_CHARACTERS = 80
"""A request that the conversation shows is named by its beginning."""
_CUT_OFF = "it ended before its answer."
_UNANSWERED = ("cancelled", "failed")
_UNFINISHED = "Begun in it, but not finished (the member's newest words and calls, as data):"
_REPORT_CHARACTERS = 600
"""The beginning of an earlier report; members with tools open its file."""


async def fold_turns(state: State, scope: RunScope) -> PrivateState:
    """Return the update that adds the records of the thread's runs that ended since the last fold.

    These are several if a run ended before its first node had: that one has folded nothing. The records are a
    function of what the runs' logs have stored, so they are the same after a restart.
    """
    if scope.read_runs is None:
        return {}
    return _add_records(await scope.read_runs(private_of(state).get("folded") or []), state)


def fold_unanswered(state: State) -> PrivateState:
    """Return the update that adds the record of the run before, where nobody keeps a log of runs.

    That is in a graph that keeps its own state, such as in Studio. An answered request needs no record.
    """
    run_id, earlier = private_of(state).get("run_id"), _before_present(state)
    if not run_id or not earlier:
        return {}
    request = earlier[-1]
    at = next(at for at, one in enumerate(state["messages"]) if one is request)
    if any(is_report(one) or is_reply(one) for one in state["messages"][at + 1 :]):
        return {}
    return _add_records([EndedRun(run_id, request.id or "", request.text, "failed", _CUT_OFF)], state)


def _add_records(runs: Sequence[EndedRun], state: State) -> PrivateState:
    private = private_of(state)
    folded, turns = private.get("folded") or [], private.get("turns") or []
    if not runs:
        return {}
    known = {one["request_id"] for one in turns}
    new = [one for one in runs if one.request_id not in known and not _is_gone(one, state)]
    records = [*turns, *_fold(new, state)]
    return {"turns": records[-MAX_TURNS:], "folded": [*folded, *(one.run_id for one in runs)][-_MAX_FOLDED:]}


def _is_gone(run: EndedRun, state: State) -> bool:
    """Return whether the thread was rolled back behind a run.

    It is not where the checkpoint was gone: after a run had ended once, and was retried.
    """
    return run.is_undone and all(one.id != run.request_id for one in state["messages"])


def _fold(runs: Sequence[EndedRun], state: State) -> list[TurnRecord]:
    """Return the records of runs, oldest first."""
    numbers = {one.id: number for number, one in enumerate(_users(state), start=1)}
    next_number, progress = len(_before_present(state)) + 1, progress_of(state)
    records: list[TurnRecord] = []
    for run in reversed(runs):
        next_number = numbers.get(run.request_id, next_number)
        # The state has the plan of the run that was the last to come beyond its first node.
        own = progress if run.run_id == private_of(state).get("run_id") else None
        record = _record_of(run, own)
        if run.request_id in numbers:
            record["number"] = next_number
        elif run.request:
            record["number"], record["request"] = next_number - 1, run.request
        if record["notes"] or record["ended"]:
            records.append(record)
    return records[::-1]


def _record_of(run: EndedRun, progress: PlanProgress | None) -> TurnRecord:
    steps = progress.steps if progress is not None else ()
    unfinished = [result for one in steps if (result := _unfinished_of(one, run))]
    ended = _describe_end(run, unfinished)
    done: list[TurnResult] = [
        {"step": one.id, "agent": one.agent_name, "title": one.title, "text": one.found}
        for one in steps
        if run.status in _UNANSWERED and one.has_result
    ]
    return {
        "request_id": run.request_id,
        "number": 0,
        "ended": ended,
        "notes": describe_inputs(_before_the_end(run), {one.id: one.title for one in steps}),
        "results": [*done, *unfinished] if ended else [],
    }


def _before_the_end(run: EndedRun) -> list[ReceivedInput]:
    """Return what was sent to a run, without the cancellation that `_describe_end` says."""
    retries = [at for at, one in enumerate(run.received) if isinstance(one.content, Retry)]
    last_try = retries[-1] if retries else 0
    is_cancelled = run.status == "cancelled"
    return [
        one
        for at, one in enumerate(run.received)
        if not (is_cancelled and at >= last_try and isinstance(one.content, Cancel))
    ]


def _unfinished_of(step: TrackedStep, run: EndedRun) -> TurnResult | None:
    """Return what a step had found that was not done when its run ended; None for nothing."""
    if step.has_result:
        return None
    if not (text := "\n".join(filter(None, (step.part, *run.work.get(step.id, ()))))):
        return None
    named = {"step": step.id, "agent": step.agent_name, "title": step.title}
    return cast("TurnResult", {**named, "text": text, "is_unfinished": True})


def _describe_end(run: EndedRun, unfinished: Sequence[TurnResult]) -> str:
    match run.status:
        case "cancelled":
            return "The user cancelled this before it was answered."
        case "failed":
            return f"This was not answered: {run.error or 'the run failed.'}"
        case "budget_exhausted" if unfinished:
            return "The budget of this was used up before all of it was done."
        case _:
            return ""


def _users(state: State) -> list[BaseMessage]:
    """Return the user's requests, and answers to the coordinator's questions about them."""
    return [one for one in state["messages"] if is_users(one)]


def _before_present(state: State) -> list[BaseMessage]:
    """Return the user's requests and answers before the present request."""
    earlier = _users(state)
    while len(earlier) > 1 and earlier[-1].additional_kwargs.get(ANSWER_MARK):
        earlier.pop()  # of the present request
    return earlier[:-1]


def history_of(state: State) -> ThreadHistory:
    """Return the history of the thread before the present request."""
    requests = _before_present(state)
    records = private_of(state).get("turns") or ()
    by_request = {one["request_id"]: one for one in records}
    shown = {one.id for one in _users(state)} | {one["request_id"] for one in records if "request" in one}
    turns, replies = _lost_turns(records, 0, shown), _replies_by_request(state)
    for number, one in enumerate(requests, start=1):
        request = "\n".join(
            [_text_of(state, one), *(f"  {reply}" for reply in replies.get(one.id or "", ()))]
        )
        text = _with_record(request, by_request.get(one.id or ""), shown)
        has_file = number <= len(requests) - ALWAYS_SHOWN_TURNS or _is_long(text)
        turns.append(EarlierTurn(text, result_path(number, 0, "user") if has_file else ""))
        turns += _lost_turns(records, number, shown)
    return ThreadHistory(turns, answer_of(state), request=len(requests) + 1)


def _replies_by_request(state: State) -> dict[str, list[str]]:
    """Return what the team answered to each request, by its id, without the last report.

    A report is named by its file and its beginning; the coordinator's words are whole. A question of the
    coordinator is shown with its answer.
    """
    replies: dict[str, list[str]] = {}
    messages, reports, request, last = state["messages"], 0, "", answer_of(state)
    for at, one in enumerate(messages):
        following = messages[at + 1] if at + 1 < len(messages) else None
        if is_users(one):
            request = one.id or ""
        elif is_report(one):
            reports += 1
            if (text := report_text(one)) != last:
                begins = shorten(text, _REPORT_CHARACTERS)
                replies.setdefault(request, []).append(
                    f"Your team's report (file {report_path(reports)}): {begins}"
                )
        elif is_reply(one) and not (following is not None and following.additional_kwargs.get(ANSWER_MARK)):
            replies.setdefault(request, []).append(f"Your team answered: {one.text}")
    return replies


def _lost_turns(
    records: Sequence[TurnRecord], number: int, shown: Collection[str | None]
) -> list[EarlierTurn]:
    """Return the turns after the request with this number whose requests the conversation does not have."""
    lost = [one for one in records if one["number"] == number and one.get("request")]
    texts = [_with_record(one.get("request", ""), one, shown) for one in lost]
    return [
        EarlierTurn(text, result_path(number, place, "user") if _is_long(text) else "")
        for place, text in enumerate(texts, start=1)
    ]


def _with_record(request: str, record: TurnRecord | None, shown: Collection[str | None]) -> str:
    lines = _lines_of(record, _unknown(record["notes"], shown)) if record else []
    return "\n".join([request, *lines])


def _text_of(state: State, message: BaseMessage) -> str:
    """Return a request; an answer together with the question."""
    if not message.additional_kwargs.get(ANSWER_MARK):
        return message.text
    at = next(at for at, one in enumerate(state["messages"]) if one is message)
    question = state["messages"][at - 1].text
    return f"Your team asked: {question}\nThe user answered: {message.text}"


def mirrored_turns(state: State) -> list[MirroredText]:
    """Return the long texts of earlier turns with the paths of their mirrors."""
    turns = [one for one in history_of(state).turns if one.path]
    texts = [MirroredText(one.path, remove_fences(one.text)) for one in turns]
    for record in private_of(state).get("turns") or ():
        texts += [
            MirroredText(_path_of(record, one), f"# {one['title']}\n\n{one['text']}")
            for one in record["results"]
            if _is_long(one["text"])
        ]
    return texts


def format_decided_turns(state: State) -> str:
    """Return what the user said and decided in earlier turns, beyond the messages of the conversation.

    For the coordinator and the planner, which see the conversation; "" for nothing.
    """
    known, texts = {one.id for one in state["messages"]}, {one.id: one.text for one in _users(state)}
    records = private_of(state).get("turns") or ()
    known |= {one["request_id"] for one in records if "request" in one}
    turns: list[str] = []
    for record in records:
        request = shorten(texts.get(record["request_id"], ""), _HEADING_CHARACTERS)
        lines = _lines_of(record, _unknown(record["notes"], known))
        if lines and (request := record.get("request") or request):
            turns.append("\n".join([f"- {request}", *lines]))
    if not turns:
        return ""
    return "\n".join(["What else happened in this conversation, by the user's request:", *turns])


def notes_of_run(state: State, progress: PlanProgress, shown: Collection[str] = ()) -> list[str]:
    """Return what the user said and decided in the present run, but for messages that wait for the lead.

    `shown` are the ids of messages that the reader gets in another way. Answers about the request and the
    plan are left out: they are part of the request.
    """
    received = [one for one in run_scope().inbox.received if not _waits_for_lead(one)]
    if not received:
        return []
    messages = {one.input_id for one in received if isinstance(one.content, Message)}
    in_request = {one.id for one in state["messages"]} - messages
    notes = describe_inputs(received, {one.id: one.title for one in progress.steps})
    return _unknown(notes, {*in_request, *shown})


def _waits_for_lead(one: ReceivedInput) -> bool:
    return isinstance(one.content, Message) and one.reply is None


def _unknown(notes: Sequence[TurnNote], known: Collection[str | None]) -> list[str]:
    """Return the texts of notes that are not shown in another way."""
    return [one["text"] for one in notes if one["id"] not in known]


def _lines_of(record: TurnRecord, notes: Sequence[str]) -> list[str]:
    lines = [f"  {one}" for one in notes]
    if record["ended"]:
        lines.append(f"  {record['ended']}")
    return [*lines, *(_line_of(record, one) for one in record["results"])]


def _line_of(record: TurnRecord, result: TurnResult) -> str:
    step = f"step {result['step']}, {result['agent']}: {result['title']}"
    text = result["text"]
    if result.get("is_unfinished"):
        # Who has no files reads the newest part here. What the member's calls returned is in it.
        file = f" file {_path_of(record, result)}, which ends with:" if _is_long(text) else ""
        return f"  {_UNFINISHED} {step}:{file}\n{fence_untrusted(text[-MIN_RESULT_CHARACTERS:])}"
    return f"  Done in it: {step}: {f'file {_path_of(record, result)}' if _is_long(text) else text}"


def _path_of(record: TurnRecord, result: TurnResult) -> str:
    return result_path(record["number"], result["step"], result["agent"])


def _is_long(text: str) -> bool:
    return len(text) >= MIN_RESULT_CHARACTERS
