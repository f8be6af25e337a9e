"""What a run waits for: in words, and as a form that a person fills in at the client."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import ElicitRequestFormParams, ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from maniple.api.schemas import InterruptView

ANSWER = "answer"
LONGEST_ANSWER = 200_000
_APPROVAL = 'Answer "approve" to let it run; anything else is a no, and tells the team why.'
_UNKNOWN = 'Answer "run it again" or "skip", or say what its result was.'
_REVIEW = 'Answer "accept" to have it carried out, or say what is to be different.'


def asked(pause: InterruptView, thread_id: str) -> str:
    """Return what is asked, and how the answer is given without a form."""
    how = f'Give the answer with ask_team, as the question, with thread_id "{thread_id}".'
    return f"The run waits. {question_of(pause)}\n{how}"


def question_of(pause: InterruptView) -> str:
    """Return what is asked and which answers are understood; nothing in it is hidden from the eye."""
    return "".join(one if one.isprintable() or one in "\n\t" else _escaped(one) for one in _question(pause))


def _question(pause: InterruptView) -> str:
    payload = pause.payload
    match pause.kind:
        case "plan_review":
            return "\n".join(["The plan is:", *_steps(payload.get("plan") or {}), *_error(payload), _REVIEW])
        case "tool_approval":
            arguments = json.dumps(payload.get("tool_input") or {}, ensure_ascii=False, indent=1)
            tool = payload.get("tool_name", "A tool")
            if payload.get("reason") == "unknown_result":
                lost = "ran when the program stopped; nobody knows whether it did its work:"
                return f"{tool} {lost}\n{arguments}\n{_UNKNOWN}"
            return "\n".join([f"{tool} is to run with:", arguments, *_error(payload), _APPROVAL])
        case "question":
            words = payload.get("question")
            text = words if isinstance(words, str) else json.dumps(payload, ensure_ascii=False)
            return "\n".join([text, *(f"- {option}" for option in pause.options)])


def form_of(pause: InterruptView) -> ElicitRequestFormParams:
    """Return the form that asks a person."""
    field = {"type": "string", "title": "Answer", "minLength": 1}
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    return ElicitRequestFormParams(message=question_of(pause), requested_schema=schema)


def answer_in(result: ElicitResult) -> str | None:
    """Return what the person answered; None when the form was declined, closed or left empty."""
    given = (result.content or {}).get(ANSWER) if result.action == "accept" else None
    text = given.strip() if isinstance(given, str) else ""
    return text[:LONGEST_ANSWER] or None


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client shows forms now; one that names no kind of elicitation means forms."""
    client = context.session.client_capabilities
    elicitation = client.elicitation if client is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return context.session.can_send_request or context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _steps(plan: Mapping[str, Any]) -> Iterator[str]:
    yield str(plan.get("title", ""))
    for number, step in enumerate(plan.get("steps") or (), start=1):
        yield f"  {number}. {step.get('agent_name')}: {step.get('title')}: {step.get('description', '')}"


def _error(payload: Mapping[str, Any]) -> Iterator[str]:
    if error := payload.get("error"):
        yield f"The last answer could not be used: {error}"
