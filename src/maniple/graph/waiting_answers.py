"""The lead's answers to questions that the user asks while the run waits for the user's decision."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, model_validator

from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.profiles import profile_of
from maniple.errors import BudgetExhausted, ModelError
from maniple.graph.question_forms import is_question
from maniple.graph.steering import MessageCase, describe_work
from maniple.graph.written_plan import object_schema
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.scope.inputs import Reply
from maniple.scope.run_scope import current_meter
from maniple.text import shorten
from maniple.types import LEAD_REPLY

_FORM_CHARACTERS = 6_000
"""How much of what the run waits for is shown to the lead, each."""
_UNANSWERED = (
    """The lead's model could not answer this. The plan waits: accept it, edit it, or say what to change."""
)


class WaitingAnswer(BaseModel):
    """The lead's answer to a message that decides nothing."""

    is_question: bool
    reply: str = ""

    @model_validator(mode="after")
    def _require_reply(self) -> "WaitingAnswer":
        if self.is_question and not self.reply.strip():
            raise ValueError("a question needs a reply")
        return self


_SHAPE = Shape(
    "WaitingAnswer",
    object_schema(is_question={"type": "boolean"}, reply={"type": "string"}),
    WaitingAnswer,
)


async def answer_waiting(
    model: BaseChatModel, case: MessageCase, forms: Sequence[Mapping[str, Any]]
) -> Reply | None:
    """Answer a question about a run that waits; one model call, which changes nothing of the run.

    `forms` are what the run waits for, as the user was shown it. None leaves the message to the lead of the
    run that goes on: it is no question, the model is too small to tell, or it gave no usable answer.
    """
    answer = await _ask_lead(model, case, forms)
    return Reply("answered", answer.reply) if answer is not None and answer.is_question else None


async def answer_about_plan(model: BaseChatModel, case: MessageCase, form: Mapping[str, Any]) -> Reply | None:
    """Answer a question about a plan that waits for its review, shown as `form`.

    None if the message wants the plan changed. Its form decides that if the model is too small to tell, or
    gave no usable answer; then a question is answered with that, and with the notes of the plan's steps.
    """
    answer = await _ask_lead(model, case, [form])
    if answer is not None:
        return Reply("answered", answer.reply) if answer.is_question else None
    if not is_question(case.message.text):
        return None
    notes = [f"{step.title}: {step.note}" for step in case.progress.steps if step.note]
    return Reply("answered", "\n".join([_UNANSWERED, *notes]))


async def send_reply(message_id: str, text: str) -> None:
    """Send an event with a reply to what the user said about a plan."""
    await adispatch_custom_event(
        LEAD_REPLY, {"message_id": message_id, "disposition": "answered", "content": text}
    )


async def _ask_lead(
    model: BaseChatModel, case: MessageCase, forms: Sequence[Mapping[str, Any]]
) -> WaitingAnswer | None:
    """Return the lead's answer; None if the model is too small to tell, or gave no usable one."""
    if not profile_of(model).judges_failures:
        return None
    try:
        async with current_meter().enforce_time_limit():
            answer, _ = await send_within_window(
                model,
                _messages(case, forms, room_of(model)),
                lambda shown: ask_for(model, shown, _SHAPE),
            )
    except (BudgetExhausted, ShapeError, ModelError):
        return None
    return answer


def _messages(case: MessageCase, forms: Sequence[Mapping[str, Any]], room: int) -> list[BaseMessage]:
    texts = [
        *describe_work(case, room),
        *(f"The team waits for: {_describe_form(one)}" for one in forms),
        f"The user's new message: {case.message.text}",
    ]
    prompt = render("waiting", team=[*case.members], locale="")
    return [SystemMessage(prompt), *(HumanMessage(text) for text in texts if text)]


def _describe_form(form: Mapping[str, Any]) -> str:
    return shorten(json.dumps(form, ensure_ascii=False, default=str), _FORM_CHARACTERS)
