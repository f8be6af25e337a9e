"""The pictures in the content parts of messages, in the forms of OpenAI, LangChain and Anthropic."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from maniple.types import is_mapping

MAX_PICTURES_OF_MESSAGES = 20
_DATA = "data:"
_BASE64 = ";base64"


def find_message_pictures(messages: Iterable[BaseMessage]) -> list[bytes]:
    """Return the bytes of the newest pictures that messages hold themselves, oldest first.

    Pictures at addresses are not among them, nor data that is no valid Base64.
    """
    found = [content for message in messages for content in _pictures_of(message)]
    return found[-MAX_PICTURES_OF_MESSAGES:]


def _pictures_of(message: BaseMessage) -> Iterator[bytes]:
    parts = message.content if isinstance(message.content, list) else []
    for part in parts:
        if is_mapping(part) and (encoded := _encoded(part)):
            try:
                content = base64.b64decode("".join(encoded.split()), validate=True)
            except (binascii.Error, ValueError):
                continue
            if content:
                yield content


def _encoded(part: Mapping[str, Any]) -> str:
    """Return the Base64 of a picture; "" for any other part."""
    match part.get("type"):
        case "image_url" | "input_image":
            value = part.get("image_url")
            url = value.get("url") if is_mapping(value) else value
            return _of_data_url(url)
        case "image":
            source = part.get("source")
            inner = source if is_mapping(source) else part
            data = inner.get("base64") or inner.get("data")
            return data if isinstance(data, str) else _of_data_url(inner.get("url"))
        case _:
            return ""


def _of_data_url(url: object) -> str:
    if not isinstance(url, str) or not url.startswith(_DATA):
        return ""
    head, _, data = url.partition(",")
    return data if head.endswith(_BASE64) else ""
