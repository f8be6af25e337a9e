"""The base class of all sections of the settings, and the types of values that they have."""

import ipaddress
import json
import re
import unicodedata
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

_METHODS = ("/chat/completions", "/completions", "/embeddings")
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`: localhost, 127.0.0.0/8 or ::1."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def _blank_is_none(value: object) -> object:
    return None if value == "" else value


def _trimmed(value: object) -> object:
    return _blank_is_none(value.strip()) if isinstance(value, str) else value


def _day_is_text(value: object) -> object:
    return str(value) if isinstance(value, date) else value


def _is_sendable(key: SecretStr | None) -> SecretStr | None:
    """Refuse a key that no HTTP header can carry, naming the wrong character and never the key."""
    for position, character in enumerate(key.get_secret_value() if key else "", start=1):
        if not (character.isascii() and character.isprintable()):
            name = unicodedata.name(character, "a control character")
            raise ValueError(
                f"character {position} of this key is {name} (U+{ord(character):04X}), which no key has; "
                "copy the key again from the provider, without quotes around it"
            )
    return key


def _is_endpoint(url: str | None) -> str | None:
    if url is None:
        return None
    path = ""
    try:
        parts = urlsplit(url)
        path = parts.path.rstrip("/").casefold()
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The address itself is not repeated: a key may stand in it.
        raise ValueError("this is no URL of an endpoint; write it as https://host/v1")
    if wrong := next((end for end in _METHODS if path.endswith(end)), None):
        raise ValueError(f"leave out {wrong} at its end: it is added to every request")
    return url


def _at_home(path: object) -> object:
    if not isinstance(path, str):
        return path
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(
            "there is no home directory for the ~ at its beginning; write the whole path"
        ) from None


OptionalText = Annotated[str | None, BeforeValidator(_blank_is_none)]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_trimmed)]
ApiKey = Annotated[OptionalSecret, AfterValidator(_is_sendable)]
# YAML reads 2024-10-21 as a date.
ApiVersion = Annotated[OptionalText, BeforeValidator(_day_is_text)]
EndpointUrl = Annotated[str | None, BeforeValidator(_trimmed), AfterValidator(_is_endpoint)]
UserPath = Annotated[Path, BeforeValidator(_at_home)]
Reference = Annotated[str, Field(pattern=rf"^{_IDENTIFIER}(\.{_IDENTIFIER})*:{_IDENTIFIER}$", max_length=200)]
"""An object in a module, as `module:attribute`."""


class _Harmless:
    """The type of `HARMLESS`."""

    def __repr__(self) -> str:
        return "HARMLESS"


HARMLESS = _Harmless()
"""Marks a setting that the files of an untrusted folder may set: `Annotated[int, HARMLESS]`.

Such a setting runs, reads and writes nothing, chooses no address and no model, and loosens no limit.
"""


class Section(BaseModel):
    """A part of the settings: it never changes, and a key that is not known is a mistake.

    A list may be written as one text, as in a variable: `a, b` or `["a", "b"]`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _read_lists(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        texts = {
            name: parse_list(value)
            for name, value in values.items()
            if isinstance(value, str)
            and (field := cls.model_fields.get(name)) is not None
            and _is_list(field.annotation)
        }
        return {**values, **texts}


def parse_list(text: str) -> list[Any]:
    """Return the entries of `a, b` or `["a", "b"]`."""
    if text.lstrip().startswith("["):
        with suppress(ValueError):
            return json.loads(text)
    return [entry for entry in re.split(r"[,\s]+", text) if entry]


def _is_list(annotation: Any) -> bool:
    return any(get_origin(one) in (list, tuple) for one in (annotation, *get_args(annotation)))
