"""The questions that a user may want to ask after an answer."""

import re
from collections.abc import Sequence
from typing import Annotated

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import AfterValidator, BaseModel, Field

from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.task import truncate_middle
from maniple.graph.written_plan import object_schema
from maniple.llms import Shape, ask_for
from maniple.prompts import render

SUGGESTED_QUESTIONS = 3
MAX_CHARACTERS = 300
"""The length of a suggestion; a longer text is no short question, and is refused."""
_QUESTION_CHARACTERS = 4_000
_ANSWER_CHARACTERS = 24_000
_LIST_MARK = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")


def _as_line(text: str) -> str:
    """Return a text as one line of printable characters, without the mark of a list."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    line = _LIST_MARK.sub("", line)
    if not line or len(line) > MAX_CHARACTERS:
        raise ValueError(f"a question has 1 to {MAX_CHARACTERS} characters")
    return line


class _Suggestions(BaseModel):
    questions: Annotated[list[Annotated[str, AfterValidator(_as_line)]], Field(min_length=1)]


_SHAPE = Shape(
    "Suggestions",
    object_schema(questions={"type": "array", "items": {"type": "string"}}),
    _Suggestions,
)


async def suggest_questions(model: BaseChatModel, question: str, answer: str) -> Sequence[str]:
    """Return up to `SUGGESTED_QUESTIONS` questions, each one line of plain text; at most two model calls.

    Raises `ShapeError` if the model gives none, and `ModelError` or `BudgetExhausted`.
    """
    messages: list[BaseMessage] = [
        SystemMessage(render("suggestions", team=[], locale="")),
        HumanMessage(f"The question: {truncate_middle(question, _QUESTION_CHARACTERS)}"),
        HumanMessage(f"The answer: {truncate_middle(answer, _ANSWER_CHARACTERS)}"),
    ]
    found, _ = await send_within_window(model, messages, lambda shown: ask_for(model, shown, _SHAPE))
    return list(dict.fromkeys(found.questions))[:SUGGESTED_QUESTIONS]
