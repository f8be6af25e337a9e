"""The pictures in the content parts of messages, in the forms of OpenAI, LangChain and Anthropic."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from maniple.reading.pictures import identify_picture
from maniple.types import is_mapping

PART_TYPES = ("image", "image_url", "input_image")
PIXELS_PER_TOKEN = 750
"""Anthropic's rule, width x height / 750. Qwen counts 784 pixels a token; OpenAI's tiles of 512 x 512 pixels
and Gemini's of 768 x 768 are fewer tokens, so that the estimate is on the safe side."""
MAX_PICTURE_TOKENS = 3_300
"""Those of 1,568 x 1,568 pixels: providers scale larger pictures down."""
UNKNOWN_PICTURE_TOKENS = 1_000
"""Of a picture whose size is not known, such as one at an address: 1,000 x 750 pixels."""
_HEAD_CHARACTERS = 64_000
"""So much of a picture's Base64 is decoded to find its size."""
_DATA = "data:"
_BASE64 = ";base64"


def is_picture_part(part: Any) -> bool:
    """Return whether a content part of a message is a picture."""
    return is_mapping(part) and part.get("type") in PART_TYPES


def picture_tokens(width: int, height: int) -> int:
    """Estimate the tokens of a picture by its size in pixels."""
    return min(max(-(-width * height // PIXELS_PER_TOKEN), 1), MAX_PICTURE_TOKENS)


def content_tokens(content: bytes) -> int:
    """Estimate the tokens of a picture by its first bytes."""
    info = identify_picture(content)
    return picture_tokens(info.width, info.height) if info is not None else UNKNOWN_PICTURE_TOKENS


def part_tokens(part: Mapping[str, Any]) -> int:
    """Estimate the tokens of a picture in a message."""
    head = _encoded(part)[:_HEAD_CHARACTERS]
    return content_tokens(_decode(head[: len(head) // 4 * 4])) if head else UNKNOWN_PICTURE_TOKENS


def decode_picture(part: Mapping[str, Any]) -> bytes:
    """Return the bytes that a content part holds; b"" for an address, and for any other part."""
    return _decode(_encoded(part))


def picture_address(part: Mapping[str, Any]) -> str:
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


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
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
    return _of_data_url(picture_address(part))


def _of_data_url(url: str) -> str:
    if not url.startswith(_DATA):
        return ""
    head, _, data = url.partition(",")
    return data if head.endswith(_BASE64) else ""
