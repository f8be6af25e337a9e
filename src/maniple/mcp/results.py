"""The results of tool calls as text and pictures."""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult

MAX_RESULT_CHARACTERS = 60_000
"""The limit of a result's text. Of a longer one, head and tail are shown, like output of sandboxed code."""
MAX_PICTURES = 4
MAX_PICTURE_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class ToolPicture:
    """An image from a server, with the media type that the server declares."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a call: the full text and pictures.

    If `is_error`, the tool failed and `text` is its error.
    """

    text: str
    pictures: tuple[ToolPicture, ...] = ()
    is_error: bool = False


def parse_result(result: CallToolResult) -> ToolOutcome:
    """Return a result as text and at most `MAX_PICTURES` pictures; omitted parts are named in the text."""
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
    if structured is not None and not _is_in_texts(structured, texts):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return ToolOutcome("\n".join(texts), tuple(pictures), bool(result.is_error))


def truncate_text(text: str, where: str = "") -> str:
    """Return head and tail of a long text.

    The note in between names the omitted length, and `where` it is.
    """
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
            return _decode_picture(block.data, block.mime_type)
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
        return _decode_picture(resource.blob, media_type)
    return f"[resource <{resource.uri}> of type {media_type}, {len(resource.blob) * 3 // 4} bytes]", None


def _decode_picture(data: str, media_type: str) -> tuple[str, ToolPicture | None]:
    if len(data) * 3 // 4 > MAX_PICTURE_BYTES:
        return f"[an image of more than {MAX_PICTURE_BYTES} bytes was left out: {media_type}]", None
    try:
        return "", ToolPicture(base64.b64decode(data, validate=True), media_type)
    except (binascii.Error, ValueError):
        return f"[an image that cannot be read: {media_type}]", None


def _is_in_texts(structured: Any, texts: Sequence[str]) -> bool:
    """Return whether a text has the same content, which servers send for older clients."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        # The official SDK wraps values that are not objects in this key.
        value = structured["result"]
        if any(text == (value if isinstance(value, str) else json.dumps(value)) for text in texts):
            return True
    return any(_parse_json(text) == structured for text in _json_candidates(texts))


def _json_candidates(texts: Iterable[str]) -> Iterable[str]:
    return (text for text in texts if text[:1] in "[{" and len(text) <= MAX_RESULT_CHARACTERS * 10)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
