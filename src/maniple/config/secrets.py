"""The secret values in the settings."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, SecretStr

from maniple.config.settings import Settings
from maniple.redaction import Redactor

NO_KEY = "not-needed"
"""What an endpoint is sent that has no key: clients want one."""
PLACEHOLDERS = frozenset(
    {"", NO_KEY, "changeme", "dummy", "empty", "lm-studio", "no-key", "none", "null", "ollama"}
    | {"placeholder", "sk-dummy", "sk-no-key-required", "unused"}
)
"""Placeholders for keys of local servers that need none; they are no secrets and must not be masked."""

_SAYS_SECRET = re.compile(r"auth|cookie|credential|key|passw|secret|sig|token", re.I)
_SCHEME = re.compile(r"^(basic|bearer|token) +", re.I)


def secrets_of(settings: Any) -> Iterator[str]:
    """Yield every secret in a tree of settings, some of them several times.

    That is each `SecretStr`, the credentials in each URL, and the text under each name that denotes a secret
    in a mapping, such as the headers of a server. The embedded model's key is none of them: it is made for
    one process and this machine only.
    """
    for secret in _found(settings):
        if secret.casefold() not in PLACEHOLDERS:
            yield secret


def redactor_of(settings: Settings) -> Redactor:
    """Return the redactor for every secret of the settings, which all parts of a program share."""
    settings.redactor.add(secrets_of(settings))
    return settings.redactor


def _found(value: Any) -> Iterator[str]:
    match value:
        case SecretStr():
            yield from _bare(value.get_secret_value())
            yield from _in_url(value.get_secret_value())
        case BaseModel():
            yield from _found([one for _, one in value])
        case dict():
            yield from _found(list(value.values()))
            yield from _named(value)
        case list() | tuple() | set() | frozenset():
            for one in value:
                yield from _found(one)
        case str() if "://" in value:
            yield from _in_url(value)


def _named(values: Mapping[Any, Any]) -> Iterator[str]:
    for name, one in values.items():
        if isinstance(one, str) and _SAYS_SECRET.search(str(name)):
            yield from _bare(one)


def _bare(secret: str) -> set[str]:
    """Return the secret with and without surrounding blanks, and without the scheme of an Authorization
    header.
    """
    return {secret, secret.strip(), _SCHEME.sub("", secret.strip())}


def _in_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    # A name alone is a token, as in https://TOKEN@host.
    if secret := parts.password or parts.username:
        yield from {secret, unquote(secret)}
    for name, value in parse_qsl(parts.query):
        if _SAYS_SECRET.search(name):
            yield value
