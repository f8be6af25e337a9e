"""What a server answered to a call, as text and pictures."""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult

MAX_RESULT_CHARACTERS = 60_000
"""Of a text that is told: head and tail of a longer one, as of what sandboxed code prints."""
MAX_PICTURES = 4
MAX_PICTURE_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class ToolPicture:
    """An image as the server sent it; its `media_type` is what the server says."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`text` is the whole; `is_error` says that the tool failed, in these words."""

    text: str
    pictures: tuple[ToolPicture, ...] = ()
    is_error: bool = False


def parse_result(result: CallToolResult) -> ToolOutcome:
    """Return a result as text and at most `MOST_PICTURES` pictures; what is left out is named."""
    texts: list[str] = []
    pictures: list[ToolPicture] = []
    for block in result.content:
        text, picture = _read(block)
        if picture is not None and len(pictures) == MAX_PICTURES:
            text, picture = f"[a further image was left out: {picture.media_type}]", None
        if picture is not None:
            pictures.append(picture)
        if text:
            texts.append(text)
    structured = result.structured_content
    if structured is not None and not _is_said(structured, texts):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return ToolOutcome("\n".join(texts), tuple(pictures), bool(result.is_error))


def truncate_text(text: str, where: str = "") -> str:
    """Return head and tail of a longer text, with what is missing named, and `where` it is."""
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    half = MAX_RESULT_CHARACTERS // 2
    left_out = f"{len(text) - 2 * half} characters cut{f'; {where}' if where else ''}"
    return f"{text[:half]}\n[… {left_out} …]\n{text[-half:]}"


def _read(block: Any) -> tuple[str, ToolPicture | None]:
    match block.type:
        case "text":
            return block.text, None
        case "image":
            return _pictured(block.data, block.mime_type)
        case "resource":
            return _resource(block.resource)
        case "resource_link":
            words = (block.name, f"<{block.uri}>", block.mime_type, block.description)
            return "Resource: " + " ".join(filter(None, words)), None
        case kind:
            return f"[{kind} of type {getattr(block, 'mime_type', 'unknown')}: left out]", None


def _resource(resource: Any) -> tuple[str, ToolPicture | None]:
    if (text := getattr(resource, "text", None)) is not None:
        return f"Resource <{resource.uri}>:\n{text}", None
    media_type = resource.mime_type or "application/octet-stream"
    if media_type.startswith("image/"):
        return _pictured(resource.blob, media_type)
    return f"[resource <{resource.uri}> of type {media_type}, {len(resource.blob) * 3 // 4} bytes]", None


def _pictured(data: str, media_type: str) -> tuple[str, ToolPicture | None]:
    if len(data) * 3 // 4 > MAX_PICTURE_BYTES:
        return f"[an image of more than {MAX_PICTURE_BYTES} bytes was left out: {media_type}]", None
    try:
        return "", ToolPicture(base64.b64decode(data, validate=True), media_type)
    except (binascii.Error, ValueError):
        return f"[an image that cannot be read: {media_type}]", None


def _is_said(structured: Any, texts: Sequence[str]) -> bool:
    """Whether one of the texts is the same, as servers send it for clients that know no structure."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        # So the official SDK wraps what is no object.
        value = structured["result"]
        if any(text == (value if isinstance(value, str) else json.dumps(value)) for text in texts):
            return True
    return any(_parsed(text) == structured for text in _like_json(texts))


def _like_json(texts: Iterable[str]) -> Iterable[str]:
    return (text for text in texts if text[:1] in "[{" and len(text) <= MAX_RESULT_CHARACTERS * 10)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
