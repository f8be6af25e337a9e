"""Finds keys that were copied from an example and never replaced, such as `your key` or `sk-...`."""

import re
from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from maniple.config.sources import Keys, SettingsOrigin
from maniple.types import is_list, is_mapping

_PLACEHOLDER = re.compile(
    r".*\s.*|<.*>|\[.*\]|\{.*\}|\$\{?\w+\}?|.*(?:\.\.\.|…|x{3,}|\*{3,})"
    r"|(?:.*[-_])?(?:your|my|insert|enter|put)[-_ ].*(?:key|token|secret).*"
    r"|(?:api|secret)?[-_]?(?:key|token)(?:[-_]here)?|change[-_ ]?me|replace[-_ ]?me|to[-_]?do|.*密钥.*",
    re.IGNORECASE,
)
"""Real keys have no spaces, and neither brackets around them nor dots or one letter repeated at their end."""


def is_placeholder(key: str) -> bool:
    """Return whether a key is one of an example; an empty one is not."""
    return _PLACEHOLDER.fullmatch(key.strip()) is not None


def describe_placeholders(settings: BaseModel, origin: SettingsOrigin) -> Iterator[str]:
    """Yield a notice for each secret of the settings that was never filled in; it names no value."""
    for keys, secret in _walk_secrets(settings, ()):
        if is_placeholder(secret.get_secret_value()):
            name = ".".join(map(str, keys))
            yield f"{origin.place_of(keys)}: {name} is a placeholder of an example. Put your own key there."


def _walk_secrets(value: object, above: Keys) -> Iterator[tuple[Keys, SecretStr]]:
    if isinstance(value, SecretStr):
        yield above, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _walk_secrets(getattr(value, name), (*above, name))
    elif is_mapping(value):
        for name, below in value.items():
            yield from _walk_secrets(below, (*above, str(name)))
    elif is_list(value) or isinstance(value, tuple):
        for number, below in enumerate(value):
            yield from _walk_secrets(below, (*above, number))
