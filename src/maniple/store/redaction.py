"""Writes checkpoints and tool calls without secrets."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from maniple.redaction import Redactor
from maniple.store.protocols import ToolCallLedger
from maniple.store.records import ToolCallRecord

ALLOWED_MODULES: None = None
"""Checkpoints restore only LangChain's and LangGraph's own types.

Anyone who can change a checkpoint on disk could otherwise have any class called. LangGraph itself adds the
types of a graph's state when it compiles one.
"""
_FIELD_NAME = re.compile("[a-z_]+")


def make_serializer() -> JsonPlusSerializer:
    """Return a serializer that restores the types of `ALLOWED_MODULES` only."""
    return JsonPlusSerializer(allowed_msgpack_modules=ALLOWED_MODULES)


class RedactingSerializer(JsonPlusSerializer):
    """Masks secrets in the bytes of LangGraph's serializer without changing their length or format.

    An ASCII secret can only match text and small numbers of msgpack, and `*` is valid in both. A secret that
    equals a field name in a value (a password `messages`, for example) stays in that value: masked, the value
    could not be read.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(allowed_msgpack_modules=ALLOWED_MODULES)
        self._redactor = redactor

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the kind of `obj` and its bytes, without secrets."""
        kind, data = super().dumps_typed(obj)
        masked = self._redactor.same_length(data)
        if masked is data or self._is_readable(kind, data, masked):
            return kind, masked
        for redactor in self._redactor.each():
            masked = redactor.same_length(data)
            if masked is not data and self._is_readable(kind, data, masked):
                data = masked
        return kind, data

    def _is_readable(self, kind: str, data: bytes, masked: bytes) -> bool:
        before = self.loads_typed((kind, data))
        try:
            after = self.loads_typed((kind, masked))
        except Exception:  # noqa: BLE001 - any error of a reader means that these bytes must not be written
            return False
        return _has_same_shape(before, after)


def _has_same_shape(before: Any, after: Any) -> bool:
    """Whether two values have the same types and field names at every level."""
    if type(before) is not type(after):
        return False
    if isinstance(before, BaseModel):
        return _has_same_shape(dict(before), dict(after))
    if isinstance(before, dict):
        return _have_same_items(cast("Mapping[Any, Any]", before), after)
    if isinstance(before, list | tuple):
        items = cast("Sequence[Any]", before)
        return len(items) == len(after) and all(map(_has_same_shape, items, after))
    return True


def _have_same_items(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> bool:
    pairs = zip(before.items(), after.items(), strict=False)
    return len(before) == len(after) and all(_is_same_item(*pair) for pair in pairs)


def _is_same_item(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    (key, value), (other_key, other_value) = before, after
    is_name = isinstance(key, str) and _FIELD_NAME.fullmatch(key) is not None
    return (key == other_key or not is_name) and _has_same_shape(value, other_value)


class RedactedLedger:
    """Masks secrets before they reach `ledger` (see `protocols.ToolCallLedger`).

    Model endpoints choose the ids of calls. They are masked as `RedactingSerializer` masks them, so that a
    call from a checkpoint finds its record.
    """

    def __init__(self, ledger: ToolCallLedger, redactor: Redactor) -> None:
        self._ledger = ledger
        self._redactor = redactor

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        return await self._ledger.begin(run_id, self._mask_id(tool_call_id), tool_name, self._mask(arguments))

    async def start(self, run_id: str, tool_call_id: str) -> None:
        await self._ledger.start(run_id, self._mask_id(tool_call_id))

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        await self._ledger.end(run_id, self._mask_id(tool_call_id), self._mask(result))

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        return await self._ledger.list_by_run(run_id)

    def _mask(self, text: str) -> str:
        """Mask the values in a JSON text but not its syntax: a secret may equal a number or a field name."""
        try:
            value = json.loads(text)
        except ValueError:
            return self._redactor.text(text)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            masked: Any = {key: self._redactor.value(one) for key, one in fields.items()}
        else:
            masked = self._redactor.value(value)
        return text if masked == value else json.dumps(masked, ensure_ascii=False)

    def _mask_id(self, tool_call_id: str) -> str:
        masked = self._redactor.same_length(tool_call_id.encode("utf-8", "surrogatepass"))
        return masked.decode("utf-8", "surrogatepass")
