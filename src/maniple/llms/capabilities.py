"""The features of model endpoints, learned from real calls.

The first request that uses a feature is its probe. If the endpoint rejects the feature, that is recorded, and
later requests do not use it (see `docs/decisions/0002-capabilities-from-real-calls.md`). `maniple doctor
--probe`
tests features by short calls instead. `models.*.capabilities` in the settings overrides both.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import Runnable

from maniple.errors import ModelError, StoreError
from maniple.llms.judge_measurements import JudgeMeasurement
from maniple.shared_texts import CAPABILITIES, SharedTexts

Feature = Literal[
    "tools",
    "json_schema",
    "json_object",
    "grammar",
    "vision",
    "stream_usage",
    "parallel_tools",
    "temperature",
    "max_completion_tokens",
    "reasoning_content",
    "reasoning_effort",
    "tool_choice",
    "developer_role",
    "late_system",
    "system_role",
    "same_role",
    "stop",
    "unopened_thoughts",
    "long_call_ids",
    "empty_content",
    "extra_content",
    "streaming",
]
"""The last ones are about the form of requests; `refusals.RULES` says what becomes of a request without them:

`temperature` (and its like), `max_completion_tokens` in place of `max_tokens`, `reasoning_content` (sent back
with tool calls), `reasoning_effort` (that of the run), `tool_choice` that forces a call, system messages in a
role of their own (`developer_role`, `system_role`) or after the first message (`late_system`), neighbours of
the `same_role`, `stop`. Answers with `unopened_thoughts` have only the mark that closes them. Calls have
`long_call_ids` of any form, messages with calls may have `empty_content`, and calls get the `extra_content`
back with which the endpoint sent them.
Without `streaming`, each answer is asked for as a whole.
"""
FEATURES: tuple[Feature, ...] = get_args(Feature)

SCHEMA_PREFIX = "schema."
"""Before a keyword of JSON schemas, as the name of a feature: `schema.additionalProperties`."""
PICTURES_PREFIX = "pictures."
"""Before the largest number of pictures in one request, as the name of a feature: `pictures.1`."""

PROBE_SECONDS = 30.0
ANSWER_TOKENS = 60


CACHE_SECONDS = 7 * 24 * 3600
"""Learned features expire after a week, because an endpoint may be upgraded."""
JUDGE_SECONDS = 90 * 24 * 3600
"""The measurement as a judge of claims is kept for longer, because it takes many calls."""

_UNTIL_KNOWN: Mapping[Feature, bool] = {
    **dict.fromkeys(FEATURES, True),
    "grammar": False,
    "max_completion_tokens": False,
    "reasoning_content": False,
    "unopened_thoughts": False,
}
_WITHOUT_DEFAULT = ("max_completion_tokens", "unopened_thoughts")
"""Features whose default depends on the endpoint."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Capabilities:
    """The known features of one endpoint and model; `None` or absent means not known yet."""

    known: dict[str, bool] = field(default_factory=dict)
    """By the name of a `Feature`, of a keyword after `SCHEMA_PREFIX`, or of a number of pictures."""
    fixed: Mapping[str, bool] = field(default_factory=dict)
    """Features set in the settings; they take precedence over learned ones."""
    on_learned: Callable[[Mapping[str, bool]], None] | None = None
    judging: JudgeMeasurement | None = None
    """How well the model judges claims, if that was measured."""
    has_answered: bool = False
    """Whether an answer in words had no thoughts that only a closing mark ends; the first one is held."""

    def has(self, feature: Feature) -> bool:
        """Return whether to use `feature`: as configured, else as learned, else the default."""
        return self.fixed.get(feature, self.known.get(feature, _UNTIL_KNOWN[feature]))

    def known_of(self, feature: Feature) -> bool | None:
        """Return the same, but None for a feature whose default depends on the endpoint."""
        if feature in _WITHOUT_DEFAULT:
            return self.fixed.get(feature, self.known.get(feature))
        return self.has(feature)

    @property
    def refused_keywords(self) -> frozenset[str]:
        """The keywords of JSON schemas that the endpoint refuses."""
        every = {**self.known, **self.fixed}
        return frozenset(
            name.removeprefix(SCHEMA_PREFIX)
            for name, works in every.items()
            if not works and name.startswith(SCHEMA_PREFIX)
        )

    @property
    def most_pictures(self) -> int | None:
        """The largest number of pictures in one request; None without a limit."""
        chosen = [name for name in self.fixed if name.startswith(PICTURES_PREFIX)]
        names = chosen or [name for name in self.known if name.startswith(PICTURES_PREFIX)]
        return min((int(name.removeprefix(PICTURES_PREFIX)) for name in names), default=None)

    @property
    def one_tool_at_a_time(self) -> bool:
        """Whether to request one call at a time:

        Configured, and the endpoint accepts `parallel_tool_calls`.
        """
        return self.fixed.get("parallel_tools") is False and self.known.get("parallel_tools") is not False

    def learn(self, feature: str, works: bool) -> None:
        """Record whether a real call with the feature worked."""
        if self.known.get(feature) == works:
            return
        self.known[feature] = works
        if self.on_learned is not None:
            self.on_learned(dict(self.known))


def capabilities_of(model: Runnable[Any, Any]) -> Capabilities:
    """Return the capabilities of `model`, also if it is bound to tools; for foreign models, the defaults."""
    known = getattr(getattr(model, "bound", model), "capabilities", None)
    return known if isinstance(known, Capabilities) else Capabilities()


class CapabilityCache:
    """The text `name` of `texts`: `{"URL MODEL": {"at": seconds, "features": {…}, "judge": measurement}}`.

    `features` has a boolean for each name. A text that cannot be read or written is no error; it only costs a
    few repeated calls. The constructor blocks.
    """

    def __init__(self, texts: SharedTexts, name: str = CAPABILITIES) -> None:
        self._texts = texts
        self._name = name
        self._stamp = self._read_stamp()
        self._entries = _fresh_entries(self._read())

    def of(self, url: str, model: str) -> dict[str, bool]:
        """Return the known features of a model at an endpoint."""
        stored = self._entries.get(f"{url} {model}", {}).get("features", {})
        return {name: works for name, works in stored.items() if isinstance(works, bool)}

    def judging_of(self, url: str, model: str) -> JudgeMeasurement | None:
        """Return how well a model judges claims; None if that is not known, or no longer."""
        return JudgeMeasurement.of(self._entries.get(f"{url} {model}", {}).get("judge"))

    async def refresh(self) -> bool:
        """Take what other processes have stored meanwhile; return whether anything was."""
        stamp = await asyncio.to_thread(self._read_stamp)
        if stamp in (None, self._stamp):
            return False
        self._entries = _fresh_entries(await asyncio.to_thread(self._read))
        self._stamp = stamp
        return True

    def store(self, url: str, model: str, features: Mapping[str, bool]) -> asyncio.Future[None]:
        """Store learned features; the returned future is done when they are."""
        known = {**self.of(url, model), **features}
        return self._store(f"{url} {model}", {"at": time.time(), "features": known})

    def store_judging(self, url: str, model: str, found: JudgeMeasurement) -> asyncio.Future[None]:
        """Store how well a model judges claims, as `store` does."""
        return self._store(f"{url} {model}", {"judge": found.to_json()})

    def _store(self, name: str, values: Mapping[str, Any]) -> asyncio.Future[None]:
        self._entries[name] = {**self._entries.get(name, {}), **values}
        return asyncio.get_running_loop().run_in_executor(None, self._write, name, dict(values))

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        try:
            # What others have stored meanwhile stays.
            with self._texts.locked(self._name):
                entries = _fresh_entries(self._read())
                before = entries.get(name, {})
                entries[name] = {**before, **values}
                if "features" in values:
                    entries[name]["features"] = {**before.get("features", {}), **values["features"]}
                self._texts.write(self._name, json.dumps(entries, indent=1))
        except StoreError as error:
            _LOG.debug("What a call has shown of an endpoint is not stored: %s", error)

    def _read_stamp(self) -> Hashable:
        try:
            return self._texts.stamp(self._name)
        except StoreError:
            return None

    def _read(self) -> dict[str, dict]:
        try:
            entries = json.loads(self._texts.read(self._name) or "{}")
        except (StoreError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}


def _fresh_entries(entries: dict[str, dict]) -> dict[str, dict]:
    fresh = dict[str, dict]()
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        known = dict[str, Any]()
        if isinstance(entry.get("features"), dict) and _is_fresh(entry.get("at"), CACHE_SECONDS):
            known |= {"at": entry["at"], "features": entry["features"]}
        measured = JudgeMeasurement.of(entry.get("judge"))
        if measured is not None and _is_fresh(measured.at, JUDGE_SECONDS):
            known["judge"] = measured.to_json()
        if known:
            fresh[name] = known
    return fresh


def _is_fresh(at: object, seconds: float) -> bool:
    # Entries from the future were written with a wrong clock and would never expire.
    now = time.time()
    return isinstance(at, int | float) and now - seconds < at < now + seconds


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
    """A short call, and the test of its answer that shows whether the feature works."""

    feature: Feature
    content: str | list[Any]
    works: Callable[[AIMessage], bool | None]
    """Returns None if the answer does not show it."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe; `works` is None if it is unknown, for the reason in `detail`."""

    feature: Feature
    works: bool | None
    detail: str = ""


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
        # A model may support tools and still not call this one.
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
    """Probe each feature of `model` with one call, record the result, and yield it.

    Makes five calls of about fifty tokens, each limited to 30 seconds.
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
        # The client records features that an endpoint rejects by name. Other failures do not show anything.
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
