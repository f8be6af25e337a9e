"""Find out what a model can do by short calls, for people who want to know before the first question."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from maniple.errors import ModelError
from maniple.llms.calls import capabilities_of
from maniple.llms.capabilities import Feature

PROBE_SECONDS = 30.0
ANSWER_TOKENS = 60
_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_FUNCTION = {
    "name": "ping",
    "description": "Answers pong.",
    "parameters": {"type": "object", "properties": {}},
}
# One white pixel.
_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A short call, and how to tell from its answer that the feature works."""

    feature: Feature
    content: str | list[Any]
    works: Callable[[AIMessage], bool | None]
    """None: the answer does not tell."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one call showed; `works` is None when the call failed for another reason, which `words` name."""

    feature: Feature
    works: bool | None
    words: str = ""


def _is_object(answer: AIMessage) -> bool:
    try:
        return isinstance(json.loads(answer.text), dict)
    except ValueError:
        return False


PROBES: tuple[Probe, ...] = (
    Probe("stream_usage", "Say ok.", lambda answer: answer.usage_metadata is not None),
    Probe(
        "tools",
        "Call the tool ping.",
        # A model may know tools and still not care to call this one.
        lambda answer: bool(answer.tool_calls) or None,
        {"tools": [{"type": "function", "function": _FUNCTION}]},
    ),
    Probe(
        "json_schema",
        'Answer with the JSON {"ok": true}',
        _is_object,
        {
            "extra_body": {
                "response_format": {"type": "json_schema", "json_schema": {"name": "Ok", "schema": _SCHEMA}}
            }
        },
    ),
    Probe(
        "json_object",
        'Answer with the JSON {"ok": true}',
        _is_object,
        {"extra_body": {"response_format": {"type": "json_object"}}},
    ),
    Probe(
        "vision",
        [{"type": "text", "text": "Say ok."}, {"type": "image_url", "image_url": {"url": _PICTURE}}],
        lambda answer: True,
    ),
)


async def probe(model: BaseChatModel) -> AsyncIterator[Finding]:
    """Ask `model` once for each feature, remember what was found, and yield it.

    Five calls of some fifty tokens; each ends after 30 seconds at the latest.
    """
    capabilities = capabilities_of(model)
    for one in PROBES:
        finding = await _found(model, one)
        if finding.works is not None:
            capabilities.learn(one.feature, finding.works)
        yield finding


async def _found(model: BaseChatModel, one: Probe) -> Finding:
    capabilities = capabilities_of(model)
    believed = capabilities.has(one.feature)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            answer = await _streamed(model, one)
    except TimeoutError:
        return Finding(one.feature, None, f"no answer within {PROBE_SECONDS:.0f} seconds")
    except ModelError as error:
        # The client notes what an endpoint rejects by name; any other failure says nothing of the feature.
        rejected = error.code == "model_bad_request" and (believed and not capabilities.has(one.feature))
        return Finding(one.feature, False if rejected else None, str(error))
    works = one.works(answer)
    return Finding(
        one.feature, works, "" if works is not None else "accepted, but the model made no use of it"
    )


async def _streamed(model: BaseChatModel, one: Probe) -> AIMessage:
    whole: AIMessageChunk | None = None
    async for chunk in model.astream(
        [HumanMessage(content=one.content)], max_tokens=ANSWER_TOKENS, **one.options
    ):
        if isinstance(chunk, AIMessageChunk):
            whole = chunk if whole is None else whole + chunk
    return whole or AIMessageChunk(content="")
