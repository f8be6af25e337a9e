"""The record of a turn of the conversation: what the user said and decided in it, and what it left."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

from maniple.scope.client_tools import ClientCall
from maniple.scope.inputs import (
    Cancel,
    Disposition,
    Message,
    PlanChange,
    ReceivedInput,
    Reply,
    Resume,
    Retry,
    StepAnswer,
)
from maniple.text import shorten
from maniple.tools.decisions import (
    CallApproval,
    CallEdit,
    CallRejection,
    is_plan_acceptance,
    parse_approval,
    parse_plan_feedback,
    read_json_object,
)
from maniple.tools.interaction import answer_text
from maniple.types import is_mapping

_ARGUMENT_CHARACTERS = 1_000
"""The longest arguments of a call in a note; the user's own words are never cut here."""
_CHANGES: Mapping[str, str] = {
    "skip": "The user removed {step} from the plan.",
    "redo": "The user had {step} done again.",
    "edit": "The user changed {step} of the plan{fields}",
    "add": "The user added a step to the plan{fields}",
    "move": "The user moved {step} of the plan.",
}
_REQUESTS: Mapping[str, str] = {
    "skip": "Skip {step}.",
    "redo": "Do {step} again.",
    "edit": "Change {step}{fields}.",
    "add": "Add a step{fields}.",
    "move": "Move {step}.",
}
_REPLIES: Mapping[Disposition, str] = {
    "answered": "The team's lead replied:",
    "plan_changed": "The team's lead decided to change the plan, and replied:",
    "passed_on": "The team's lead passed it on, and replied:",
    "replanned": "The team's lead had the rest of the plan written again, and replied:",
    "finishing": "The team's lead had the report written with what there is, and replied:",
    "next_run": "It is a request of its own, for after this one. The team's lead replied:",
}
"""What became of a message; the reply follows."""


class TurnNote(TypedDict):
    """One thing that the user said or decided; `id` is that of the input."""

    id: str
    text: str


class TurnResult(TypedDict):
    """The result of a step of a run that gave no answer, or what the step had found until then."""

    step: int
    agent: str
    title: str
    text: str
    is_unfinished: NotRequired[bool]
    """Whether the step was not done: `text` is the newest that its member wrote and called."""


class TurnRecord(TypedDict):
    """An earlier turn, as plain data in the graph's state."""

    request_id: str
    """The id of the message with the request."""
    number: int
    """The number of the request among the user's requests on the thread, from 1 (see `request`)."""
    request: NotRequired[str]
    """The request, if the conversation does not have it: its run ended before the team began.

    Then `number` is that of the request before it, 0 for none.
    """
    ended: str
    """How it ended, as a sentence; "" if it was answered."""
    notes: list[TurnNote]
    results: list[TurnResult]


def describe_inputs(received: Sequence[ReceivedInput], titles: Mapping[int, str]) -> list[TurnNote]:
    """Return what the user said and decided in a run, in order; `titles` are those of the plan's steps."""
    noted = ((one, _describe(one, titles)) for one in received)
    return [{"id": one.input_id, "text": text} for one, text in noted if text]


def _describe(one: ReceivedInput, titles: Mapping[int, str]) -> str:
    match one.content:
        case Message(text):
            return f"The user wrote while the team worked: {text}{_describe_reply(one.reply)}"
        case PlanChange() if one.sender == "user" or _is_refused(one):
            return _describe_change(one, titles)
        case StepAnswer() | Resume():
            return _describe_answer(one.content.form, one.content.answer)
        case Retry():
            return "The user had the team do again what was missing."
        case Cancel() if not _is_refused(one):
            return "The user cancelled the work."
        case _:
            return ""


def _is_refused(one: ReceivedInput) -> bool:
    return one.reply is not None and one.reply.disposition == "refused"


def _describe_reply(reply: Reply | None) -> str:
    if reply is None:
        return ""
    said = f"{_REPLIES.get(reply.disposition, '')} {reply.text}".strip()
    return f"\n{said}" if reply.text else ""


def describe_request(change: PlanChange, titles: Mapping[int, str] | None = None) -> str:
    """Return what a change of the plan asks for, as a sentence; `titles` are those of the plan's steps."""
    return _fill_in(_REQUESTS, change, titles or {})


def _describe_change(one: ReceivedInput, titles: Mapping[int, str]) -> str:
    assert isinstance(one.content, PlanChange)
    if one.reply is None or not _is_refused(one):
        return _fill_in(_CHANGES, one.content, titles)
    asked = _fill_in(_REQUESTS, one.content, titles)
    who = "user" if one.sender == "user" else "team's lead"
    return f"The {who} asked to change the plan: {asked} It was not changed: {one.reply.text}"


def _fill_in(sentences: Mapping[str, str], change: PlanChange, titles: Mapping[int, str]) -> str:
    title = titles.get(change.step_id, "")
    step = f"step {change.step_id} ({title})" if title else f"step {change.step_id}"
    parts = (change.agent_name, change.title, change.description)
    fields = f": {': '.join(filter(None, parts))}"
    return sentences.get(change.action, "").format(step=step, fields=fields)


def _describe_answer(form: Any, answer: Any) -> str:
    """Return the answer to a question, together with the question."""
    asked: Mapping[str, Any] = form if is_mapping(form) else {}
    match asked.get("kind"):
        case "tool_approval" if asked.get("reason") == "approval":
            return _describe_approval(asked, answer)
        case "tool_approval":
            call = _format_call(asked, asked.get("tool_input"))
            return f"Asked whether the call {call} had been done, the user answered: {_as_text(answer)}"
        case "plan_review":
            return _describe_review(asked, answer)
        case _ if ClientCall.of(asked) is not None:
            # The user said nothing: a function's result, which nobody vouches for, is its caller's material.
            return ""
        case _:
            question = asked.get("question") or (_as_text(form) if form else "")
            said = f"The user answered: {answer_text(answer) or 'nothing'}"
            return f"The team asked: {question}\n{said}" if question else said


def _describe_approval(asked: Mapping[str, Any], answer: Any) -> str:
    call = _format_call(asked, asked.get("tool_input"))
    match parse_approval(answer):
        case CallApproval():
            return f"The user approved the call {call}."
        case CallEdit(arguments):
            return f"The user changed the call {call} to {_format_call(asked, arguments)}; that one ran."
        case CallRejection(reason):
            return f"The user rejected the call {call}, which did not run{': ' if reason else '.'}{reason}"
        case _:
            said = _as_text(answer)
            return f"Asked to approve the call {call}, the user said, without deciding: {said}"


def _describe_review(asked: Mapping[str, Any], answer: Any) -> str:
    if is_plan_acceptance(answer):
        return "The user accepted the plan."
    if is_mapping(read_json_object(answer)):
        changes = "; ".join(_find_changes(_steps_of(asked.get("plan")), _steps_of(answer)))
        return f"The user changed the plan in its review{': ' if changes else '.'}{changes}"
    return f"Shown the plan, the user said: {parse_plan_feedback(str(answer))}"


def _steps_of(plan: Any) -> Sequence[str]:
    """Return the steps of a plan that is not checked yet, one a line."""
    data = read_json_object(plan)
    if is_mapping(data) and is_mapping(data.get("plan")):
        data = data["plan"]
    steps = data.get("steps") if is_mapping(data) else None
    return [
        ": ".join(str(one[key]) for key in ("agent_name", "title", "description") if one.get(key))
        for one in (cast("Sequence[Any]", steps) if isinstance(steps, list) else ())
        if is_mapping(one)
    ]


def _find_changes(shown: Sequence[str], edited: Sequence[str]) -> list[str]:
    now = [f"step {number} is {one}" for number, one in enumerate(edited, start=1) if one not in shown]
    return [*now, *(f"removed was {one}" for one in shown if one not in edited)]


def _format_call(asked: Mapping[str, Any], arguments: Any) -> str:
    return f"{asked.get('tool_name')}({shorten(_as_text(arguments), _ARGUMENT_CHARACTERS)})"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
