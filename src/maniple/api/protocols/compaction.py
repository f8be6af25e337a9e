"""The `compaction` items of OpenAI's Responses: what the team reads beside the user's messages.

Source: https://platform.openai.com/docs/api-reference/responses/compact and https://www.openresponses.org

An item is compressed text with a code that only this installation can make, for one API key. It is not secret
from the client that holds it: all of it came from that client, or was sent to it.
"""

import base64
import hashlib
import hmac
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from pydantic import TypeAdapter

from maniple.api.protocols.openai_errors import UnsupportedParameter

COMPACTION = "compaction"
"""The type of these items."""
MAX_CONTENT_BYTES = 10_485_760
"""The most text that the items of one request hold, as JSON before it is compressed."""
_PURPOSE = b"compaction of Responses, version 1"
_CODE_BYTES = 32
_LEVEL = 9


class _GivenItem(Protocol):
    """An item of an input, as a request has it."""

    type: str
    role: str | None

    @property
    def model_extra(self) -> dict[str, Any] | None:
        """Its other keys."""
        ...


_Item = TypeVar("_Item", bound=_GivenItem)


@dataclass(frozen=True, slots=True)
class OtherMessage:
    """A message of a conversation that is not the user's."""

    after: int
    """How many messages of the user come before it."""
    role: Literal["assistant", "system"]
    content: str | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CompactedMessages:
    """The messages of a conversation beside those of the user."""

    asked: int
    """The number of the user's messages."""
    others: Sequence[OtherMessage]


_MESSAGES = TypeAdapter(CompactedMessages)


@dataclass(slots=True)
class CompactionReader:
    """Writes the contents of items, and reads those of one request. `key` is the installation's."""

    key: bytes = field(repr=False)
    owner: str
    """The id of the API key: items of another one are refused."""
    _left: int = MAX_CONTENT_BYTES

    def pack(self, messages: CompactedMessages) -> str:
        """Return the content of the item that holds these messages. Takes CPU time; raises `ValueError`."""
        data = _MESSAGES.dump_json(messages)
        if len(data) > MAX_CONTENT_BYTES:
            raise ValueError(f"The answers of the conversation have more than {MAX_CONTENT_BYTES} bytes.")
        packed = zlib.compress(data, _LEVEL)
        return base64.b64encode(self._code(packed) + packed).decode()

    def unpack(self, content: str) -> CompactedMessages:
        """Return the messages that the content of an item holds. Takes CPU time; raises `ValueError`."""
        try:
            given = base64.b64decode(content, validate=True)
        except ValueError:
            given = b""
        code, packed = given[:_CODE_BYTES], given[_CODE_BYTES:]
        if not hmac.compare_digest(code, self._code(packed)):
            raise ValueError(
                "This item was changed, or made by another service or for another API key. Send the output "
                "of /v1/responses/compact as it is, or the whole conversation."
            )
        data = zlib.decompressobj().decompress(packed, self._left + 1)
        if len(data) > self._left:
            raise ValueError(f"The compaction items of a request hold at most {MAX_CONTENT_BYTES} bytes.")
        self._left -= len(data)
        return _MESSAGES.validate_json(data)

    def _code(self, packed: bytes) -> bytes:
        key = hmac.digest(self.key, _PURPOSE, hashlib.sha256)
        return hmac.digest(key, hashlib.sha256(self.owner.encode()).digest() + packed, hashlib.sha256)


def expand_items(
    items: Sequence[_Item], reader: CompactionReader, make: Callable[[dict[str, Any]], _Item], most: int
) -> list[_Item]:
    """Return the conversation that items stand for, without compactions: at most `most` items.

    A compaction stands for messages among the newest ones of the user before it. `make` makes an item. Takes
    CPU time. Raises `UnsupportedParameter`.
    """
    expanded: list[_Item] = []
    for at, item in enumerate(items):
        if item.type != COMPACTION:
            expanded.append(item)
            continue
        try:
            messages = reader.unpack(str((item.model_extra or {}).get("encrypted_content")))
            expanded = _merge(expanded, messages, make, most)
        except ValueError as error:
            place = f"input.{at}.encrypted_content"
            raise UnsupportedParameter(place, str(error), code="invalid_value") from error
    return expanded


def _merge(
    before: Sequence[_Item], messages: CompactedMessages, make: Callable[[dict[str, Any]], _Item], most: int
) -> list[_Item]:
    """Return the items before a compaction with its messages at their places; raises `ValueError`."""
    if len(before) + len(messages.others) > most:
        raise ValueError(f"The conversation has more than {most} messages. Send its newest part.")
    asked = sum(_is_users(one) for one in before)
    if asked < messages.asked:
        raise ValueError(
            f"{messages.asked} messages of the user belong before this item, and there are {asked}. Send the "
            "output of /v1/responses/compact as it is, or the whole conversation."
        )
    merged, at, others = list[_Item](), 0, messages.others
    number = messages.asked - asked  # of messages of the user that belong to the compaction
    for item in before:
        if _is_users(item):
            while at < len(others) and others[at].after == number >= 0:
                merged.append(make({"role": others[at].role, "content": others[at].content}))
                at += 1
            number += 1
        merged.append(item)
    return [*merged, *(make({"role": one.role, "content": one.content}) for one in others[at:])]


def _is_users(item: _GivenItem) -> bool:
    return item.type == "message" and item.role == "user"
