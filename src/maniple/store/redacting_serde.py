"""Checkpoints without secrets."""

import re
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from maniple.redaction import Redactor
from maniple.store.serde import ALLOWED

_NAME = re.compile("[a-z_]+")


class RedactingSerializer(JsonPlusSerializer):
    """Masks secrets in what LangGraph's serializer wrote, byte by byte, so that its format stays whole.

    A secret of ASCII can only cover text and small numbers of msgpack, and `*` is one of either. A secret
    that is also a name in a value (a password `messages`, say) is left in that value: masked, it could not
    be read back.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(allowed_msgpack_modules=ALLOWED)
        self._redactor = redactor

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the kind of `obj` and its bytes, without secrets."""
        kind, data = super().dumps_typed(obj)
        masked = self._redactor.same_length(data)
        if masked is data or self._reads_alike(kind, data, masked):
            return kind, masked
        for one in self._redactor.each():
            masked = one.same_length(data)
            if masked is not data and self._reads_alike(kind, data, masked):
                data = masked
        return kind, data

    def _reads_alike(self, kind: str, data: bytes, masked: bytes) -> bool:
        before = self.loads_typed((kind, data))
        try:
            after = self.loads_typed((kind, masked))
        except Exception:  # noqa: BLE001 - whatever a reader makes of broken bytes, they are not to be written
            return False
        return _alike(before, after)


def _alike(before: Any, after: Any) -> bool:
    """Whether two values have the same types and names all the way down."""
    if type(before) is not type(after):
        return False
    if isinstance(before, BaseModel):
        return _alike(dict(before), dict(after))
    if isinstance(before, dict):
        pairs = list(zip(before.items(), after.items(), strict=False))
        return len(before) == len(after) and all(_same_item(one, two) for one, two in pairs)
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(_alike, before, after))
    return True


def _same_item(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    (key, value), (other_key, other_value) = before, after
    is_name = isinstance(key, str) and _NAME.fullmatch(key) is not None
    return (key == other_key or not is_name) and _alike(value, other_value)
