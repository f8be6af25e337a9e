"""JSON of a known format without secrets."""

import json
from typing import Any

from pydantic import TypeAdapter

from maniple.redaction import Redactor


def redact_json(redactor: Redactor, format_: TypeAdapter[Any], stored: str) -> str:
    """Return JSON of a format without secrets, so that it can still be read."""
    clean = _redact_readably(redactor, format_, stored)
    if clean is not None:
        return clean
    # A secret that equals a word of the format, such as `human`, made the JSON unreadable. Each secret
    # is masked separately then, and those that break the JSON are skipped.
    for one in redactor.each():
        stored = _redact_readably(one, format_, stored) or stored
    return stored


def _redact_readably(redactor: Redactor, format_: TypeAdapter[Any], stored: str) -> str | None:
    """Return the JSON without secrets; None if the result is not valid in its format."""
    clean = json.dumps(redactor.value(json.loads(stored)), ensure_ascii=False)
    try:
        format_.validate_json(clean)
    except ValueError:
        return None
    return clean
