"""The pictures in the content parts of messages, in the forms of OpenAI, LangChain and Anthropic."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from maniple.text import fix_surrogates, shorten
from maniple.types import is_mapping

MAX_PICTURES_OF_MESSAGES = 20
_PICTURE_TYPES = ("image", "image_url", "input_image")
_ADDRESS_CHARACTERS = 500
_DATA = "data:"
_BASE64 = ";base64"


def find_message_pictures(messages: Iterable[BaseMessage]) -> list[bytes]:
    """Return the bytes of the newest pictures that messages hold themselves, oldest first.

    Pictures at addresses are not among them, nor data that is no valid Base64.
    """
    found = [content for message in messages for content in _pictures_of(message)]
    return found[-MAX_PICTURES_OF_MESSAGES:]


def describe_lost_pictures(messages: Iterable[BaseMessage]) -> list[str]:
    """Return a sentence about each picture that messages do not hold, and about those beyond the limit."""
    parts = [one for message in messages for one in _parts_of(message) if one.get("type") in _PICTURE_TYPES]
    decoded = [_decoded(one) for one in parts]
    notes = [_describe_loss(one) for one, content in zip(parts, decoded, strict=True) if not content]
    if (more := sum(map(bool, decoded)) - MAX_PICTURES_OF_MESSAGES) > 0:
        most = MAX_PICTURES_OF_MESSAGES
        notes.append(f"The oldest of the messages' pictures ({more}): only {most} are stored.")
    return notes


def _describe_loss(part: Mapping[str, Any]) -> str:
    address = _address_of(part)
    if address.startswith(("http://", "https://")):
        shown = fix_surrogates(shorten(address, _ADDRESS_CHARACTERS))
        return (
            f"{shown}: a picture at an address is not fetched with the message. Who reads web pages may open "
            "it; the user may upload it as a file."
        )
    return "A picture whose data cannot be read: it is no Base64 of a picture. The user may send it again."


def _pictures_of(message: BaseMessage) -> Iterator[bytes]:
    yield from filter(None, map(_decoded, _parts_of(message)))


def _parts_of(message: BaseMessage) -> list[Mapping[str, Any]]:
    parts = message.content if isinstance(message.content, list) else []
    return [part for part in parts if is_mapping(part)]


def _decoded(part: Mapping[str, Any]) -> bytes:
    """Return the bytes of a picture; b"" for any other part."""
    try:
        return base64.b64decode("".join(_encoded(part).split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _encoded(part: Mapping[str, Any]) -> str:
    """Return the Base64 of a picture; "" for any other part."""
    if part.get("type") == "image":
        source = part.get("source")
        inner = source if is_mapping(source) else part
        data = inner.get("base64") or inner.get("data")
        if isinstance(data, str):
            return data
    return _of_data_url(_address_of(part))


def _address_of(part: Mapping[str, Any]) -> str:
    """Return the address of a picture, of the web or with its data; "" for any other part."""
    match part.get("type"):
        case "image_url" | "input_image":
            value = part.get("image_url")
            url = value.get("url") if is_mapping(value) else value
        case "image":
            source = part.get("source")
            url = (source if is_mapping(source) else part).get("url")
        case _:
            return ""
    return url.strip() if isinstance(url, str) else ""


def _of_data_url(url: str) -> str:
    if not url.startswith(_DATA):
        return ""
    head, _, data = url.partition(",")
    return data if head.endswith(_BASE64) else ""
