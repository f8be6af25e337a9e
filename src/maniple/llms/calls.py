"""Requests to a model: for a message, or for an object of a given shape by the best method the model
supports.

The order of methods is a grammar (local models), `json_schema`, a forced tool call, `json_object`, plain
text. If an endpoint rejects a method, that is recorded and the next one is tried. JSON is repaired where
possible. A model whose answer still has another shape is shown its mistake once.
"""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import json_repair
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities, Feature, capabilities_of
from maniple.llms.context_windows import is_overflow
from maniple.llms.streams import AnswerReceiver, observing
from maniple.text import without_thoughts

CUT_STREAM_ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5
MAX_WAIT_SECONDS = 8.0
MAX_ANSWER_CHARACTERS = 100_000


MAX_REPAIRED_CHARACTERS = 20_000
MAX_DEPTH = 32
_JSON_START = re.compile(r"\[\s*\{|\{")
_OBJECT_START = re.compile(r"\[\s*\{|\{\s*(?:[\"'}]|\w+\s*:|//|/\*|#)")
"""What begins an object rather than words in braces."""
_FENCED_JSON = re.compile(r"^[ \t]*```\w*\s*(?P<content>[\[{].*?)(?:^[ \t]*```|```[ \t]*$|\Z)", re.S | re.M)
_MAX_FENCES = 4
_MAX_STARTS = 4
_DECODER = json.JSONDecoder(strict=False)


PLACEHOLDER = {"type": "text", "text": "[A picture was sent here; the model cannot see pictures.]"}
_IMAGE_TYPES = frozenset({"image", "image_url"})


T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """The requested object: its validating model, its JSON schema for the endpoint, and its name."""

    name: str
    schema: dict[str, Any]
    model: type[T]


class ShapeError(ValueError):
    """The model's answer does not have the shape, even after a correction; `answer` is its last text."""

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


def broke_off(error: BaseException) -> bool:
    """Return whether to send the request again.

    The SDK has already retried failures before the first token (429, 5xx, timeouts, honouring Retry-After).
    What remains are answers that broke off or became invalid half-way.
    """
    return isinstance(error, ModelError) and (error.broke_off or error.code == "model_bad_response")


def hide_call(source: str) -> RunnableConfig:
    """Return the config of a call whose answer is no output of its agent; `source` is one of `UNSPOKEN`.

    LangGraph's streams skip the tag, `Translator` skips the source.
    """
    return {"metadata": {"lc_source": source}, "tags": ["nostream"]}


async def ask(model: Runnable[Any, Any], messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
    """Return the model's answer to `messages`; raises `ModelError` if there is none.

    For a model without vision, pictures are replaced by a sentence.
    """
    capabilities = capabilities_of(model)
    if not capabilities.has("vision"):
        messages = without_images(messages)
    try:
        return await _ask_with_retries(model, messages, options)
    except ModelError as error:
        # Endpoints reject pictures, or so many, in various words: ask again without them.
        is_refused = error.code == "model_bad_request" and not is_overflow(error)
        if not is_refused or not any(has_images(message) for message in messages):
            raise
        return await _ask_with_retries(model, without_images(messages), options)


async def ask_for(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    shape: Shape[T],
    *,
    check: Callable[[T], T] = lambda value: value,
    repairs: int = 1,
    receive: AnswerReceiver | None = None,
) -> tuple[T, AIMessage]:
    """Return the object and the message that contained it.

    `receive` gets each answer while it is written, where it is streamed.

    `check` may normalise the object, or raise `ValueError` with a text for the model. Raises `ShapeError` if
    the answer and `repairs` corrections were invalid, and `ModelError` if the endpoint fails.
    """
    conversation = list(messages)
    shown: dict[str, Any] = {"config": observing(receive)} if receive else {}
    while True:
        answer = await _ask_by_best_method(model, conversation, shape, shown)
        try:
            return check(await _parse_answer(answer, shape)), answer
        except ValueError as mistake:
            if repairs == 0:
                raise ShapeError(_describe_mistake(mistake), _text_of(answer, shape.name)) from mistake
            repairs -= 1
            conversation += _correction(_text_of(answer, shape.name), mistake)


def read_json(text: str) -> Any:
    """Return the JSON value in `text`, repaired if necessary; raises `ValueError` with a text for the model.

    It may be in Python's form. Of several values in prose and in fences, the longest one counts. Valid JSON
    may have any size. The time of a repair grows with length and depth (11 s for 20,000 characters with 500
    levels), so it is limited to the sizes of plans and tool calls. Blocks for up to a second: call it in a
    thread.
    """
    values = read_values(text)
    return values[0] if len(values) == 1 else max(values, key=_size_of)


def read_values(text: str) -> list[Any]:
    """Return the values among which `read_json` chooses: those in fences first, then the longer ones."""
    try:
        return [json.loads(text, strict=False)]
    except (ValueError, RecursionError):
        pass
    if _is_repairable(text) and (value := _read_literal(text)):
        return [value]
    fenced, others = [*_find_fenced(text)], [*_find_values(text)]
    if fenced or others:
        return [one for some in (fenced, others) for one in sorted(some, key=_size_of, reverse=True)]
    if len(text) > MAX_REPAIRED_CHARACTERS:
        raise ValueError(f"it is no JSON, and with {len(text)} characters too long to be repaired")
    if _depth(text) > MAX_DEPTH:
        raise ValueError("it is no JSON, and nested too deeply to be repaired")
    return [_repair(text) if text.lstrip().startswith("[") or _JSON_START.search(text) else ""]


def _size_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))


def _is_repairable(text: str) -> bool:
    return len(text) <= MAX_REPAIRED_CHARACTERS and _depth(text) <= MAX_DEPTH


def _find_values(text: str) -> Iterator[Any]:
    """Yield the objects and the lists of objects in a text; the first broken one is repaired."""
    at, is_tried = 0, False
    while len(text) <= MAX_ANSWER_CHARACTERS and (found := _JSON_START.search(text, at)):
        start, at = found.start(), found.start() + 1
        try:
            value, at = _DECODER.raw_decode(text, start)
        except RecursionError:
            return
        except ValueError as error:
            at = max(at, getattr(error, "pos", at))
            if (
                is_tried
                or len(text) - start > MAX_REPAIRED_CHARACTERS
                or not _OBJECT_START.match(text, start)
            ):
                continue
            is_tried = True
            value = _repair(text[start:]) if _is_repairable(text[start:]) else None
        if value:
            yield value


def _find_fenced(text: str) -> Iterator[Any]:
    """Yield the values of the first fenced blocks."""
    for block in islice(_FENCED_JSON.finditer(text), _MAX_FENCES):
        content = block["content"].strip()
        if _is_repairable(content) and (value := _read_literal(content) or _repair(content)):
            yield value


def _read_literal(text: str) -> Any:
    """Return the object or list in Python's form that a text is; None if it is none, or no JSON data."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(json.dumps(ast.literal_eval(text.strip()), allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _repair(text: str) -> Any:
    """Return the value with which a text begins, or which it contains, and which is nearly JSON."""
    value = json_repair.loads(text)
    if isinstance(value, list) and text.lstrip().startswith("{"):
        objects = [one for one in value if isinstance(one, dict)]  # prose with other brackets follows
        return max(objects, key=_size_of) if objects else value
    return value


def read_partial_json(text: str) -> tuple[Any, Any]:
    """Return the beginning of the JSON value in an answer that is still being written, twice.

    The first value includes the text that is not closed yet, the second one leaves it out. Both are None
    while there is no value, and where it needs a repair.
    """
    for found in islice(_OBJECT_START.finditer(text), _MAX_STARTS):
        part = text[found.start() :]
        try:
            return from_json(part, allow_partial="trailing-strings"), from_json(part, allow_partial=True)
        except ValueError:
            continue  # such as words in braces, or a value that more text follows
    return None, None


def has_images(message: BaseMessage) -> bool:
    """Return whether a message contains a picture."""
    return isinstance(message.content, list) and any(_is_image(part) for part in message.content)


def without_images(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with a sentence in place of each picture."""
    return [_replace_images(message) if has_images(message) else message for message in messages]


async def _ask_with_retries(
    model: Runnable[Any, Any], messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AIMessage:
    retrying = AsyncRetrying(
        retry=retry_if_exception(broke_off),
        stop=stop_after_attempt(CUT_STREAM_ATTEMPTS),
        wait=wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=MAX_WAIT_SECONDS) + wait_random(0, 1),
        reraise=True,
    )
    return await retrying(model.ainvoke, list(messages), **options)


def _replace_images(message: BaseMessage) -> BaseMessage:
    content = [PLACEHOLDER if _is_image(part) else part for part in message.content]
    return message.model_copy(update={"content": content})


def _is_image(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _IMAGE_TYPES


def _correction(answer: str, mistake: ValueError) -> list[BaseMessage]:
    # Several endpoints reject an empty assistant message.
    answered = answer[:2000] or "(nothing)"
    problem = _describe_mistake(mistake)
    correction = f"That cannot be used: {problem}\nAnswer again with the corrected JSON only."
    return [AIMessage(answered), HumanMessage(correction)]


async def _ask_by_best_method(
    model: BaseChatModel, messages: Sequence[BaseMessage], shape: Shape[Any], shown: dict[str, Any]
) -> AIMessage:
    capabilities = capabilities_of(model)
    if not isinstance(getattr(model, "capabilities", None), Capabilities):
        return await ask(model, messages, **shown)  # another provider's client accepts none of these options
    for feature, options in _list_methods(shape):
        if feature is not None and not capabilities.has(feature):
            continue
        try:
            return await ask(model, messages, **options, **shown)
        except ModelError as error:
            # Rejected: continue with the next method; the last one is plain text.
            if error.code != "model_bad_request" or feature is None or is_overflow(error):
                raise
    raise AssertionError("plain text is always tried last")


def _list_methods(shape: Shape[Any]) -> Iterator[tuple[Feature | None, dict[str, Any]]]:
    compact = {**shape.schema, "x-guidance": {"whitespace_flexible": False}}
    grammar = "%llguidance {}\nstart: %json " + json.dumps(compact, ensure_ascii=False)
    yield "grammar", {"extra_body": {"grammar": grammar}}
    json_schema = {"name": shape.name, "schema": shape.schema}
    # In `extra_body`, because LangChain routes a plain `response_format` through a slower parser.
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


def _text_of(answer: AIMessage, name: str) -> str:
    """Return the arguments of the call of a function, else of the first call, else the text."""
    if answer.tool_calls:
        asked = (call for call in answer.tool_calls if call["name"] == name)
        return json.dumps(next(asked, answer.tool_calls[0])["args"], ensure_ascii=False)
    return without_thoughts(answer.text)


async def _parse_answer(answer: AIMessage, shape: Shape[T]) -> T:
    """Return the first value of an answer that has the shape: of a tool call, of a fence, of the text."""
    text = _text_of(answer, shape.name)
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise ValueError(f"the answer has {len(text)} characters; at most {MAX_ANSWER_CHARACTERS} are read")
    try:
        return shape.model.model_validate_json(text)
    except ValidationError:
        values = await asyncio.to_thread(read_values, text)
    mistake = ValueError("it is not a JSON object")
    for value in (one for one in values if isinstance(one, dict | list)):
        try:
            return shape.model.model_validate(value)
        except ValidationError as error:
            mistake = error if not isinstance(mistake, ValidationError) else mistake
    raise mistake


def _describe_mistake(mistake: ValueError) -> str:
    if not isinstance(mistake, ValidationError):
        return str(mistake)
    problems = mistake.errors(include_url=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, p['loc'])) or 'the object'}: {p['msg']}" for p in problems)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth = max(0, depth - 1)
    return deepest
