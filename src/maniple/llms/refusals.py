"""What endpoints refuse of a request: how a refusal names it, and how the request changes without it.

`RULES` is the one table. A rule that matches the refusal of a request that uses the feature is learned in the
endpoint's `Capabilities`, and `adapt_request` changes this and all later requests. Features without `adapt`
are left to who asks, who has other ways (see `calls.ask_for`, and tools as text).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.llms import request_messages as forms
from maniple.llms.capabilities import PICTURES_PREFIX, SCHEMA_PREFIX, Capabilities, Feature
from maniple.llms.schema_keywords import keywords_in, named_keyword, remove_keywords

Json = dict[str, Any]

MAX_ADAPTATIONS = 10
"""How often one call is sent again in another form; each refusal teaches one feature."""

# Needed in addition: "Your tool call's arguments are no JSON" rejects a message, not the feature.
_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|unavailable|disabled|deprecated|cannot|can't|does not"
    r"|doesn't|only|not (?:\w+ )?(?:allowed|permitted|available|implemented|accepted|enabled|valid)"
    r"|extra (?:input|field|param)|invalid (?:parameter|field|argument|option|value)|requires|must not"
    r"|incompatible"
)
_UNKNOWN_FIELD = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|deprecated|not (?:allowed|permitted|valid)"
    r"|extra |invalid param"
)
_NO_TEXT = re.compile(
    _REFUSAL.pattern
    + r"|expected (?:an? )?\W?(?:text|str)|should be an? (?:valid )?str|str type expected|at most 0 "
    r"|must be (?:an? )?(?:of type )?(?:string|str|text)\b|not an? (?:vision|multi)"
)
_FORCES = re.compile(_REFUSAL.pattern + r"|must be|may not|forc")
_NO_STREAM = re.compile(_REFUSAL.pattern + r"|must be|verified|set .{0,20}false")
_ANY = re.compile("")
_SAMPLING = frozenset({"temperature", "top_p", "frequency_penalty", "presence_penalty"})
_TITLE = re.compile(r".*?(?:<title[^>]*>\s*(.*?)\s*</title>.*|\Z)", re.S | re.I)
# The picture itself is wrong; others may be right.
_BAD_PICTURE = (
    r"(?!.*(?:\bformat\b|media.type|\bmime|too large|\bsize|dimension|corrupt|base64|download|fetch))"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A feature of requests, and how a refusal names it."""

    feature: Feature
    names: str
    """A regular expression for the refusal's text in lower case."""
    is_used: Callable[[Json], Any]
    """Whether a request's body could have been refused for it."""
    adapt: Callable[[Json], None] | None = None
    """Changes the body of a request for an endpoint that was found so."""
    refusal: re.Pattern[str] = _REFUSAL
    """What the text must hold besides."""
    works: bool = False
    """What is learned of the feature."""


def _remove(*names: str) -> Callable[[Json], None]:
    def adapt(body: Json) -> None:
        for name in names:
            body.pop(name, None)

    return adapt


def _change(form: Callable[[list[Json]], list[Json]]) -> Callable[[Json], None]:
    def adapt(body: Json) -> None:
        if body.get("messages"):
            body["messages"] = form(body["messages"])

    return adapt


def _rename(old: str, new: str) -> Callable[[Json], None]:
    def adapt(body: Json) -> None:
        if old in body:
            body[new] = body.pop(old)

    return adapt


def _name_system(messages: list[Json]) -> list[Json]:
    return [{**one, "role": "system"} if one["role"] == "developer" else one for one in messages]


def _forget_reasoning(messages: list[Json]) -> list[Json]:
    return [{name: value for name, value in one.items() if name != "reasoning_content"} for one in messages]


def _is_forced(body: Json) -> bool:
    return body.get("tool_choice") not in (None, "auto", "none")


def _has_tools(body: Json) -> bool:
    # A rejected `tool_choice` does not mean that tools are rejected.
    return bool(body.get("tools")) and not body.get("tool_choice")


def _has_format(kind: str) -> Callable[[Json], bool]:
    return lambda body: (body.get("response_format") or {}).get("type") == kind


def _in_messages(test: Callable[[list[Json]], bool]) -> Callable[[Json], bool]:
    return lambda body: test(body.get("messages") or [])


def _allowed_roles(without: str) -> str:
    """Return a pattern for a list of the allowed roles, which `without` is not among."""
    return (
        rf"\brole\b(?!.*\b{without}\b).{{0,60}}(?:must be|should be|one of|be in|expected)\b"
        r".{0,20}\buser\b.{0,20}\bassistant"
    )


_SYSTEM = (
    r"system role|\bsystem\b.{0,40}(?:not supported|unsupported|not allowed|not enabled)|support\W+'?system"
    r"|role\W+'?(?:system|developer)|only user\b.{0,20}(?:assistant|model)|developer instruction"
    r"|should be 'user'[^.]*'(?:assistant|model)'|unknown variant \W?(?:system|developer)"
    r"|(?:\bnot|n't|\bno|without)\b.{0,30}\bsystem (?:prompt|message|instruction|role)"
    rf"|{_allowed_roles('system')}"
)
_ALTERNATION = (
    r"alternat(?:e|ing|ion)|consecutive (?:user|assistant|message)|unexpected role '?\w+'? after|same role"
    r"|(?:multiple|two|several) (?:user|assistant|messages).{0,30}in a row|expected last role"
    r"|first (?:non-system )?message (?:must|should)|(?:start|begin) with (?:an? )?'?user"
    r"|turn comes immediately"
)
_LATE_SYSTEM = (
    r"system message.{0,60}(?:begin|first|start)|(?:multiple|more than one|only one|duplicate|several) system"
    r"|after the optional system|unexpected role 'system'"
)

# Most specific first. Messages are adapted in this order, too.
RULES: tuple[Rule, ...] = (
    Rule(
        "stream_usage",
        r"stream_options|include_usage",
        lambda body: body.get("stream_usage") or body.get("stream_options"),
        _remove("stream_usage", "stream_options"),
    ),
    Rule("parallel_tools", r"parallel_tool_calls", lambda body: "parallel_tool_calls" in body),
    Rule(
        "temperature",
        r"temperature|top_p|(?:frequency|presence)_penalty|sampling param",
        lambda body: body.keys() & _SAMPLING,
        _remove(*_SAMPLING),
        _ANY,
    ),
    Rule(
        "max_completion_tokens",
        r"max_completion_tokens",
        lambda body: "max_tokens" in body,
        _rename("max_tokens", "max_completion_tokens"),
        _UNKNOWN_FIELD,
        works=True,
    ),
    Rule(
        "max_completion_tokens",
        r"max_completion_tokens(?!.*(?:too large|at most|less than|greater|maximum))",
        lambda body: "max_completion_tokens" in body,
        _rename("max_completion_tokens", "max_tokens"),
        _UNKNOWN_FIELD,
    ),
    Rule(
        "reasoning_content",
        r"reasoning_content|reasoning content|thinking.{0,40}passed back",
        _in_messages(forms.lacks_reasoning),
        refusal=_ANY,
        works=True,
    ),
    Rule(
        "reasoning_content",
        r"reasoning_content|reasoning content",
        lambda body: any("reasoning_content" in one for one in body.get("messages") or ()),
        _change(_forget_reasoning),
        _ANY,
    ),
    Rule(
        "tool_choice",
        r"tool[_ ]?choice|forced? tool",
        _is_forced,
        lambda body: _remove("tool_choice")(body) if _is_forced(body) else None,
        _FORCES,
    ),
    # Also in the words of Anthropic, Gemini and Ollama.
    Rule(
        "reasoning_effort",
        r"effort|thinking.?level|support(?:s|ed)? thinking|thinking (?:is )?not support",
        lambda body: "reasoning_effort" in body,
        _remove("reasoning_effort"),
        _ANY,
    ),
    Rule(
        "developer_role",
        r"developer(?! instruction)",
        lambda body: any(one["role"] == "developer" for one in body.get("messages") or ()),
        _change(_name_system),
        _ANY,
    ),
    Rule("late_system", _LATE_SYSTEM, _in_messages(forms.has_late_system), _change(forms.join_system), _ANY),
    Rule("system_role", _SYSTEM, _in_messages(forms.has_system), _change(forms.fold_system), _ANY),
    Rule(
        "same_role",
        _ALTERNATION,
        lambda body: not forms.is_alternating(body.get("messages") or []),
        _change(forms.join_neighbours),
        _ANY,
    ),
    # A template without a role for results, such as Gemma's: then calls are sent as text.
    Rule(
        "tools",
        rf"{_ALTERNATION}|unknown variant \W?tool|{_allowed_roles('tool')}",
        lambda body: _has_tools(body) and any(one["role"] == "tool" for one in body.get("messages") or ()),
        refusal=_ANY,
    ),
    Rule(
        "long_call_ids",
        r"tool.?call.?id.{0,80}(?:length|characters|a-z)",
        _in_messages(forms.has_long_call_ids),
        _change(forms.shorten_call_ids),
        _ANY,
    ),
    Rule(
        "extra_content",
        r"extra_content",
        _in_messages(forms.has_extra_content),
        _change(forms.remove_extra_content),
        _ANY,
    ),
    Rule("stop", r"\bstop\b|stop_sequence|stop words", lambda body: body.get("stop"), _remove("stop")),
    Rule(
        "vision",
        rf"^{_BAD_PICTURE}.*(?:image|picture|vision|multi-?modal|mmproj|text.only|content\b.*\bstr|sequence)",
        _in_messages(forms.has_pictures),
        refusal=_NO_TEXT,
    ),
    Rule(
        "empty_content",
        r"\bcontent\b.{0,80}(?:required|empty|null|none|blank|missing|whitespace|\bstr)"
        r"|(?:empty|null|missing|blank).{0,40}(?:\bcontent|\bmessage)|message.{0,60}(?:not be|is) empty",
        _in_messages(forms.has_empty_content),
        _change(forms.fill_empty_content),
        _ANY,
    ),
    Rule(
        "streaming",
        r"\bstream(?:ing|ed)?\b",
        lambda body: body.get("stream"),
        _remove("stream", "stream_usage", "stream_options"),
        _NO_STREAM,
    ),
)

_LIMITS_PICTURES = re.compile(
    r"^(?=.*(?:image|picture|photo))"
    r"(?=.*(?:too many|at most|up to|\bmax|limit|\bonly|more than|exceed|single))"
    r"(?!.*(?:\d ?[kmg]i?b\b|byte|pixel|\bpx\b|dimension|resolution|\bsize|token|too large))"
)
_COUNT = re.compile(r"(?<![\w.,\[/-])(?:\d\d?|(?:one|single)(?= (?:image|picture)))(?![\w,\]/-]|\.\d)")
_COUNT_WORDS = {"one": 1, "single": 1}

# After the keywords of schemas, which are in tools and in the response's format.
_LAST_RULES: tuple[Rule, ...] = (
    Rule("json_schema", r"json_schema", _has_format("json_schema")),
    Rule("json_object", r"json_object", _has_format("json_object")),
    Rule("json_schema", r"response_format", _has_format("json_schema")),
    Rule("json_object", r"response_format", _has_format("json_object")),
    Rule("grammar", r"grammar", lambda body: "grammar" in body),
    Rule("tools", r"tool|function", _has_tools),
)


def find_refused(text: str, body: Json) -> tuple[str, bool] | None:
    """Return the feature that a 4xx with `text` refuses of a request's `body`, and whether it works."""
    body, text = _whole(body), " ".join(text.casefold().split())
    if most := _find_most_pictures(text, body):
        return f"{PICTURES_PREFIX}{most}", True
    if found := _match(RULES, text, body):
        return found
    if _REFUSAL.search(text) and (word := named_keyword(text, keywords_in(body))):
        return f"{SCHEMA_PREFIX}{word}", False
    return _match(_LAST_RULES, text, body)


def adapt_request(body: Json, capabilities: Capabilities) -> Json:
    """Return the body of a request in the form that the endpoint accepts, as far as known.

    `body` is changed, its `extra_body` is not.
    """
    parts = [body]
    if isinstance(extra := body.get("extra_body"), dict):
        body["extra_body"] = extra = {**extra}
        parts.append(extra)
    for rule in RULES:
        if rule.adapt is not None and capabilities.known_of(rule.feature) is rule.works:
            for part in parts:
                rule.adapt(part)
    _change(forms.join_texts)(body)
    if (most := capabilities.most_pictures) is not None:
        _change(lambda messages: forms.keep_newest_pictures(messages, most))(body)
    if refused := capabilities.refused_keywords:
        for part in parts:
            remove_keywords(part, refused)
    return body


def refusal_text(error: Any) -> str:
    """Return what an endpoint's error says, without what it repeats of the request."""
    body = getattr(error, "body", None)
    fields = [endpoint_words(error) or str(error)]
    if isinstance(body, Mapping):
        fields += [str(body[name]) for name in ("param", "code", "type") if isinstance(body.get(name), str)]
    return " ".join(fields)


def endpoint_words(error: Any) -> str:
    """Return the message of an endpoint's error; of a web page, its title; "" without a body.

    A body of an unknown form is returned as it is.
    """
    body = getattr(error, "body", None)
    if text := _text(body):
        return text
    return json.dumps(body, ensure_ascii=False) if body and isinstance(body, Mapping | list) else ""


def _text_of(body: Mapping[str, Any]) -> str:
    for name in ("message", "detail", "error_msg", "msg", "error", "errors"):
        if text := _text(body.get(name)):
            break
    else:
        return ""
    # OpenRouter puts the words of the provider there.
    metadata = body.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{text}: {raw}" if isinstance(raw, str) and raw not in text else text


def _text(value: Any) -> str:
    match value:
        case str():
            return _TITLE.sub(r"\1", value) if value.lstrip().startswith("<") else value
        case Mapping():
            place = ".".join(map(str, value.get("loc") or ()))
            return f"{place}: {_text_of(value)}" if place else _text_of(value)
        case list():
            return "; ".join(filter(None, map(_text, value)))
    return ""


def _find_most_pictures(text: str, body: Json) -> int:
    """Return the number of pictures that a refusal allows, if the request has more; else 0."""
    if not _LIMITS_PICTURES.search(text):
        return 0
    # The other number is that of the request's pictures.
    most = min(
        (_COUNT_WORDS[one] if one in _COUNT_WORDS else int(one) for one in _COUNT.findall(text)), default=0
    )
    return most if most < forms.count_pictures(body.get("messages") or []) else 0


def _match(rules: tuple[Rule, ...], text: str, body: Json) -> tuple[str, bool] | None:
    for rule in rules:
        if re.search(rule.names, text) and rule.refusal.search(text) and rule.is_used(body):
            return rule.feature, rule.works
    return None


def _whole(body: Json) -> Json:
    return {**body, **(body.get("extra_body") or {})}
