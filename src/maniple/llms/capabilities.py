"""What an endpoint can do, found out from real calls.

Nothing is declared and nothing is asked in advance: the first request of a kind is the probe. An
endpoint that rejects a feature is remembered as lacking it, and the next request does without
(see `docs/decisions/0002-capabilities-from-real-calls.md`). `maniple doctor --probe` asks by short
calls instead, and `models.*.capabilities` in the settings overrides either.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import Runnable

from maniple.errors import ModelError

Feature = Literal[
    "tools", "json_schema", "json_object", "grammar", "vision", "stream_usage", "parallel_tools"
]
FEATURES: tuple[Feature, ...] = get_args(Feature)


PROBE_SECONDS = 30.0
ANSWER_TOKENS = 60


CACHE_SECONDS = 7 * 24 * 3600
"""An endpoint may be upgraded: after a week it is found out anew."""

_UNTIL_KNOWN: Mapping[Feature, bool] = {
    "tools": True,
    "json_schema": True,
    "json_object": True,
    "grammar": False,
    "vision": True,
    "stream_usage": True,
    "parallel_tools": True,
}

# The words by which endpoints name the field they reject, most specific first.
_REJECTION_WORDS: tuple[tuple[str, Feature], ...] = (
    ("stream_options", "stream_usage"),
    ("include_usage", "stream_usage"),
    ("parallel_tool_calls", "parallel_tools"),
    ("json_schema", "json_schema"),
    ("json_object", "json_object"),
    ("response_format", "json_schema"),
    ("grammar", "grammar"),
    ("image", "vision"),
    ("tool", "tools"),
    ("function", "tools"),
)


@dataclass(slots=True)
class Capabilities:
    """The known features of one endpoint and model; `None` or absent means not known yet."""

    known: dict[Feature, bool] = field(default_factory=dict)
    fixed: Mapping[Feature, bool] = field(default_factory=dict)
    """Set by hand: wins over what is learned."""
    on_learned: Callable[[Mapping[Feature, bool]], None] | None = None

    def has(self, feature: Feature) -> bool:
        """Return whether to use `feature`: set by hand, else learned, else the usual case."""
        return self.fixed.get(feature, self.known.get(feature, _UNTIL_KNOWN[feature]))

    @property
    def one_tool_at_a_time(self) -> bool:
        """Whether to ask for one call at a time: set by hand, and the endpoint takes the field that asks."""
        return self.fixed.get("parallel_tools") is False and self.known.get("parallel_tools") is not False

    def learn(self, feature: Feature, works: bool) -> None:
        """Remember what a real call showed."""
        if self.known.get(feature) == works:
            return
        self.known[feature] = works
        if self.on_learned is not None:
            self.on_learned(dict(self.known))


# "Your tool call's arguments are no JSON" is a complaint about a message, not about tools.
_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|unavailable|disabled|cannot|can't|does not|doesn't|only"
    r"|not (?:allowed|permitted|available|implemented|accepted|enabled|valid)|extra (?:input|field|param)"
    r"|invalid (?:parameter|field|argument|option|value)|requires|must not"
)


def rejected_feature(message: str, sent: set[Feature]) -> Feature | None:
    """Return the feature that an endpoint's 4xx `message` refuses, if we did send it."""
    text = message.casefold()
    if not _REFUSAL.search(text):
        return None
    for word, feature in _REJECTION_WORDS:
        if word in text:
            if feature in sent:
                return feature
            if word == "response_format" and "json_object" in sent:
                return "json_object"
    return None


def capabilities_of(model: Runnable[Any, Any]) -> Capabilities:
    """Return what is known of `model`, bound to tools or not; of one that is not ours, the usual case."""
    known = getattr(getattr(model, "bound", model), "capabilities", None)
    return known if isinstance(known, Capabilities) else Capabilities()


class CapabilityCache:
    """A small JSON file: `{"URL MODEL": {"at": seconds, "features": {name: bool}}}`.

    It is a cache: a file that cannot be read or written costs a few repeated calls, so neither is an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _fresh_entries(_read_cache(path))

    def of(self, url: str, model: str) -> dict[str, bool]:
        """Return the known features of a model at an endpoint."""
        return dict(self._entries.get(f"{url} {model}", {}).get("features", {}))

    def learned(self, url: str, model: str, features: Mapping[str, bool]) -> asyncio.Future[None]:
        """Remember them; the future is done when they are on disk."""
        known = {**self.of(url, model), **features}
        self._entries[f"{url} {model}"] = {"at": time.time(), "features": known}
        text = json.dumps(self._entries, indent=1)
        return asyncio.get_running_loop().run_in_executor(None, _write_cache, self._path, text)


def _read_cache(path: Path) -> dict[str, dict]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _fresh_entries(entries: dict[str, dict]) -> dict[str, dict]:
    now = time.time()
    return {
        name: entry
        for name, entry in entries.items()
        if isinstance(entry, dict)
        and isinstance(entry.get("features"), dict)
        and isinstance(entry.get("at"), int | float)
        # Nor one of the future: the clock was wrong, and it would stay for as long.
        and now - CACHE_SECONDS < entry["at"] < now + CACHE_SECONDS
    }


def _write_cache(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        return


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
class CapabilityProbe:
    """A short call, and how to tell from its answer that the feature works."""

    feature: Feature
    content: str | list[Any]
    works: Callable[[AIMessage], bool | None]
    """None: the answer does not tell."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one call showed; `works` is None when the call failed for another reason, which `words` name."""

    feature: Feature
    works: bool | None
    words: str = ""


def _is_object(answer: AIMessage) -> bool:
    try:
        return isinstance(json.loads(answer.text), dict)
    except ValueError:
        return False


PROBES: tuple[CapabilityProbe, ...] = (
    CapabilityProbe("stream_usage", "Say ok.", lambda answer: answer.usage_metadata is not None),
    CapabilityProbe(
        "tools",
        "Call the tool ping.",
        # A model may know tools and still not care to call this one.
        lambda answer: bool(answer.tool_calls) or None,
        {"tools": [{"type": "function", "function": _FUNCTION}]},
    ),
    CapabilityProbe(
        "json_schema",
        'Answer with the JSON {"ok": true}',
        _is_object,
        {
            "extra_body": {
                "response_format": {"type": "json_schema", "json_schema": {"name": "Ok", "schema": _SCHEMA}}
            }
        },
    ),
    CapabilityProbe(
        "json_object",
        'Answer with the JSON {"ok": true}',
        _is_object,
        {"extra_body": {"response_format": {"type": "json_object"}}},
    ),
    CapabilityProbe(
        "vision",
        [{"type": "text", "text": "Say ok."}, {"type": "image_url", "image_url": {"url": _PICTURE}}],
        lambda answer: True,
    ),
)


async def probe(model: BaseChatModel) -> AsyncIterator[ProbeResult]:
    """Ask `model` once for each feature, remember what was found, and yield it.

    Five calls of some fifty tokens; each ends after 30 seconds at the latest.
    """
    capabilities = capabilities_of(model)
    for one in PROBES:
        finding = await _run_probe(model, one)
        if finding.works is not None:
            capabilities.learn(one.feature, finding.works)
        yield finding


async def _run_probe(model: BaseChatModel, one: CapabilityProbe) -> ProbeResult:
    capabilities = capabilities_of(model)
    believed = capabilities.has(one.feature)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            answer = await _streamed(model, one)
    except TimeoutError:
        return ProbeResult(one.feature, None, f"no answer within {PROBE_SECONDS:.0f} seconds")
    except ModelError as error:
        # The client notes what an endpoint rejects by name; any other failure says nothing of the feature.
        rejected = error.code == "model_bad_request" and (believed and not capabilities.has(one.feature))
        return ProbeResult(one.feature, False if rejected else None, str(error))
    works = one.works(answer)
    return ProbeResult(
        one.feature, works, "" if works is not None else "accepted, but the model made no use of it"
    )


async def _streamed(model: BaseChatModel, one: CapabilityProbe) -> AIMessage:
    whole: AIMessageChunk | None = None
    async for chunk in model.astream(
        [HumanMessage(content=one.content)], max_tokens=ANSWER_TOKENS, **one.options
    ):
        if isinstance(chunk, AIMessageChunk):
            whole = chunk if whole is None else whole + chunk
    return whole or AIMessageChunk(content="")
