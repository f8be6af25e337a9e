"""Get an object of a given shape from a model, by the best means the model has.

The order is `json_schema`, a tool call that is asked for, `json_object`, plain text; a local model
with grammars is held to the grammar first. What an endpoint rejects is remembered and the next means
is tried at once. Text is repaired, and a model that still missed the shape is shown its mistake once.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from maniple.errors import ModelError
from maniple.llms.calls import ask, capabilities_of
from maniple.llms.capabilities import Capabilities, Feature
from maniple.llms.overflow import is_overflow
from maniple.llms.repair import read_json
from maniple.text import without_thoughts

T = TypeVar("T", bound=BaseModel)
MAX_ANSWER_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """What is wanted: the validating model, its JSON schema for the endpoint, and a name for it."""

    name: str
    schema: dict[str, Any]
    model: type[T]


class ShapeError(ValueError):
    """The model's answer does not have the shape, even after it was told; `answer` is its last text."""

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


async def ask_for(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    shape: Shape[T],
    *,
    check: Callable[[T], T] = lambda value: value,
    repairs: int = 1,
) -> tuple[T, AIMessage]:
    """Return the object and the message that carried it.

    `check` may normalise the object or raise `ValueError` with words for the model. Raises
    `ShapeError` when an answer and its `repairs` missed, `ModelError` when the endpoint fails.
    """
    conversation = list(messages)
    while True:
        answer = await _ask_by_best_means(model, conversation, shape)
        try:
            return check(await _read(answer, shape)), answer
        except ValueError as mistake:
            if repairs == 0:
                raise ShapeError(_words(mistake), _text_of(answer)) from mistake
            repairs -= 1
            conversation += _correction(answer, mistake)


def _correction(answer: AIMessage, mistake: ValueError) -> list[BaseMessage]:
    # An empty assistant message is refused by several endpoints.
    said = _text_of(answer)[:2000] or "(nothing)"
    words = f"That cannot be used: {_words(mistake)}\nAnswer again with the corrected JSON only."
    return [AIMessage(said), HumanMessage(words)]


async def _ask_by_best_means(
    model: BaseChatModel, messages: Sequence[BaseMessage], shape: Shape[Any]
) -> AIMessage:
    capabilities = capabilities_of(model)
    if not isinstance(getattr(model, "capabilities", None), Capabilities):
        return await ask(model, messages)  # another provider's client takes none of these options
    for feature, options in _means(shape):
        if feature is not None and not capabilities.has(feature):
            continue
        try:
            return await ask(model, messages, **options)
        except ModelError as error:
            # Rejected: go on with the next means, the last of which is plain text.
            if error.code != "model_bad_request" or feature is None or is_overflow(error):
                raise
    raise AssertionError("plain text is always tried last")


def _means(shape: Shape[Any]) -> Iterator[tuple[Feature | None, dict[str, Any]]]:
    compact = {**shape.schema, "x-guidance": {"whitespace_flexible": False}}
    grammar = "%llguidance {}\nstart: %json " + json.dumps(compact, ensure_ascii=False)
    yield "grammar", {"extra_body": {"grammar": grammar}}
    json_schema = {"name": shape.name, "schema": shape.schema}
    # In `extra_body`, since LangChain routes a plain `response_format` through a slower parser.
    yield (
        "json_schema",
        {"extra_body": {"response_format": {"type": "json_schema", "json_schema": json_schema}}},
    )
    function = {"name": shape.name, "parameters": shape.schema}
    yield (
        "tools",
        {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": shape.name}},
        },
    )
    yield "json_object", {"extra_body": {"response_format": {"type": "json_object"}}}
    yield None, {}


def _text_of(answer: AIMessage) -> str:
    if answer.tool_calls:
        return json.dumps(answer.tool_calls[0]["args"], ensure_ascii=False)
    return without_thoughts(answer.text)


async def _read(answer: AIMessage, shape: Shape[T]) -> T:
    text = _text_of(answer)
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise ValueError(f"the answer has {len(text)} characters; at most {MAX_ANSWER_CHARACTERS} are read")
    try:
        return shape.model.model_validate_json(text)
    except ValidationError:
        value = await asyncio.to_thread(read_json, text)
    if isinstance(value, dict):
        return shape.model.model_validate(value)
    raise ValueError("it is not a JSON object")


def _words(mistake: ValueError) -> str:
    if not isinstance(mistake, ValidationError):
        return str(mistake)
    problems = mistake.errors(include_url=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, p['loc'])) or 'the object'}: {p['msg']}" for p in problems)
