"""Variables whose names are nearly ours: typing mistakes that would otherwise pass in silence."""

import difflib
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from maniple.config.settings import Settings
from maniple.config.sources import ALIASES, PREFIX, Keys

# After a prefix of ours the rest is compared: KEY is at 0.60 of API_KEY and URL at 0.55 of BASE_URL, while
# the strangers AUTH_USER, MAX_TOKENS and EFFORT stay below 0.50.
_NEAR_REST = 0.54
# BASCI_API_KEY is at 0.923 of BASIC_API_KEY; the strangers JIRA_API_KEY and VLLM_API_KEY at 0.917 and 0.909.
_NEAR_WHOLE = 0.92
_NEAR_PREFIX = 0.6


def keys_at(keys: Keys) -> list[str]:
    """Return the keys that the section of settings called `keys` knows; none when it is no section."""
    model: type[BaseModel] = Settings
    for key in keys:
        if isinstance(key, int):
            continue  # a place in a list of sections
        field = model.model_fields.get(str(key))
        below = _section_of(field.annotation) if field else None
        if below is None:
            return []
        model = below
    return list(model.model_fields)


def nearest_variable(name: str) -> str | None:
    """Return the variable that `name`, which is none of ours, was probably meant to be, if any."""
    prefix, _, rest = name.upper().partition("_")
    ours = _rests_by_prefix()
    if prefix in ours:
        near = difflib.get_close_matches(rest, ours[prefix], n=1, cutoff=_NEAR_REST)
        return f"{prefix}_{near[0]}" if near else None
    # Most strangers are told by their prefix alone, which keeps a large environment cheap.
    prefixes = difflib.get_close_matches(prefix, ours, n=3, cutoff=_NEAR_PREFIX)
    known = [f"{one}_{each}" for one in prefixes for each in ours[one]]
    near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=_NEAR_WHOLE)
    return near[0] if near else None


@cache
def _rests_by_prefix() -> dict[str, list[str]]:
    """Return what follows each prefix of ours: `API_KEY` and others for `BASIC`."""
    rests: dict[str, list[str]] = {}
    for variable in (*ALIASES, *(PREFIX + "__".join(keys).upper() for keys in _leaves(Settings, ()))):
        prefix, _, rest = variable.partition("_")
        rests.setdefault(prefix, []).append(rest)
    return rests


def _leaves(model: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        below = _section_of(field.annotation)
        if below is None or below is model:  # fallbacks are models, too
            yield (*above, name)
        else:
            yield from _leaves(below, (*above, name))


def _section_of(annotation: Any) -> type[BaseModel] | None:
    options = (annotation, *getattr(annotation, "__args__", ()))
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)
