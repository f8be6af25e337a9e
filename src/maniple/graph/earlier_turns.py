"""The record of earlier turns: folded when the next request begins, whatever way the run before it ended."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from maniple.agents.inputs import Message
from maniple.agents.run_scope import RunScope, run_scope
from maniple.agents.task import EarlierTurn, ThreadHistory
from maniple.agents.turn_record import EndedRun, TurnRecord, TurnResult, describe_inputs
from maniple.graph.plan import PlanProgress
from maniple.graph.state import State, answer_of, is_users, private_of, progress_of
from maniple.tools.items import MIN_RESULT_CHARACTERS, MirroredText, result_path

ALWAYS_SHOWN_TURNS = 20
"""Older turns may only be counted in a prompt, so that each of them has a file, in which it can be found."""
MAX_TURNS = 200
"""The number of records that are stored; each is of a turn in which the user decided something."""


async def fold_turn(state: State, scope: RunScope) -> list[TurnRecord] | None:
    """Return the records of the thread's turns with that of the newest run; None if nothing was added.

    It is a function of what the run's log has stored, so it is the same after a restart.
    """
    records = private_of(state).get("turns") or []
    requests = [one for one in state["messages"] if is_users(one)][:-1]
    request_id = requests[-1].id if requests else None
    if scope.read_run is None or not request_id or any(one["request_id"] == request_id for one in records):
        return None
    run = await scope.read_run(request_id)
    record = None if run is None else _fold(run, requests, progress_of(state))
    return None if record is None else [*records, record][-MAX_TURNS:]


def _fold(run: EndedRun, requests: Sequence[BaseMessage], progress: PlanProgress | None) -> TurnRecord | None:
    steps = progress.steps if progress is not None else ()
    notes = describe_inputs(run.received, {one.id: one.title for one in steps})
    ended = _describe_end(run)
    results: list[TurnResult] = [
        {"step": one.id, "agent": one.agent_name, "title": one.title, "text": one.found}
        for one in steps
        if ended and (one.status == "completed" or one.outcome.status == "partial") and one.result
    ]
    if not (notes or ended):
        return None
    return {
        "request_id": requests[-1].id or "",
        "number": len(requests),
        "ended": ended,
        "notes": notes,
        "results": results,
    }


def _describe_end(run: EndedRun) -> str:
    match run.status:
        case "cancelled":
            return "The user cancelled this before it was answered."
        case "failed":
            return f"This was not answered: {run.error or 'the run failed.'}"
        case _:
            return ""


def history_of(state: State) -> ThreadHistory:
    """Return the history of the thread before the present request."""
    requests = [one for one in state["messages"] if is_users(one)][:-1]
    records = {one["request_id"]: one for one in private_of(state).get("turns") or ()}
    old = len(requests) - ALWAYS_SHOWN_TURNS
    turns = [
        _earlier_turn(number, one, records.get(one.id or ""), is_old=number <= old)
        for number, one in enumerate(requests, start=1)
    ]
    return ThreadHistory(turns, answer_of(state))


def mirrored_turns(state: State) -> list[MirroredText]:
    """Return the long texts of earlier turns with the paths of their mirrors."""
    texts = [MirroredText(one.path, one.text) for one in history_of(state).turns if one.path]
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
    known = {one.id for one in state["messages"]}
    texts = {one.id: one.text for one in state["messages"] if is_users(one)}
    turns: list[str] = []
    for record in private_of(state).get("turns") or ():
        lines = _lines_of(record, [one["text"] for one in record["notes"] if one["id"] not in known])
        if lines and record["request_id"] in texts:
            turns.append("\n".join([f"- {texts[record['request_id']]}", *lines]))
    if not turns:
        return ""
    return "\n".join(["What else happened in this conversation, by the user's request:", *turns])


def notes_of_run(progress: PlanProgress) -> list[str]:
    """Return what the user decided in the present run; messages reach the members in other ways."""
    received = [one for one in run_scope().inbox.received if not isinstance(one.content, Message)]
    titles = {one.id: one.title for one in progress.steps}
    return [one["text"] for one in describe_inputs(received, titles)]


def _earlier_turn(
    number: int, request: BaseMessage, record: TurnRecord | None, *, is_old: bool
) -> EarlierTurn:
    lines = _lines_of(record, [one["text"] for one in record["notes"]]) if record else []
    text = "\n".join([request.text, *lines])
    return EarlierTurn(text, result_path(number, 0, "user") if is_old or _is_long(text) else "")


def _lines_of(record: TurnRecord, notes: Sequence[str]) -> list[str]:
    lines = [f"  {one}" for one in notes]
    if record["ended"]:
        lines.append(f"  {record['ended']}")
    lines += [
        f"  Done in it: step {one['step']}, {one['agent']}: {one['title']}: {_shown(record, one)}"
        for one in record["results"]
    ]
    return lines


def _shown(record: TurnRecord, result: TurnResult) -> str:
    return f"file {_path_of(record, result)}" if _is_long(result["text"]) else result["text"]


def _path_of(record: TurnRecord, result: TurnResult) -> str:
    return result_path(record["number"], result["step"], result["agent"])


def _is_long(text: str) -> bool:
    return len(text) >= MIN_RESULT_CHARACTERS
