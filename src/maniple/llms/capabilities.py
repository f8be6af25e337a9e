"""What an endpoint can do, found out from real calls.

Nothing is declared and nothing is asked in advance: the first request of a kind is the probe. An
endpoint that rejects a feature is remembered as lacking it, and the next request does without
(see `docs/decisions/0002-capabilities-from-real-calls.md`). `maniple doctor --probe` asks by short
calls instead, and `models.*.capabilities` in the settings overrides either.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Feature = Literal[
    "tools", "json_schema", "json_object", "grammar", "vision", "stream_usage", "parallel_tools"
]
FEATURES: tuple[Feature, ...] = get_args(Feature)

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
        """Say whether to use `feature`: set by hand, else learned, else the usual case."""
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
