"""What a prompt of an editor has: text, pictures, and files that the team gets as uploads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from langchain_core.messages import HumanMessage

from maniple.service.sent_files import SentFile, decode_content
from maniple.text import fix_surrogates

ContentBlock = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


@dataclass(slots=True)
class PromptReader:
    """Reads the blocks of one prompt; files that it links to are read by the editor, with unsaved changes."""

    client: Client
    session_id: str
    can_read_files: bool
    """Whether the editor offers its file system."""
    files: list[SentFile] = field(default_factory=list[SentFile])
    notes: list[str] = field(default_factory=list[str])
    """What is not used, and why, for the user."""

    async def read(self, blocks: Sequence[ContentBlock]) -> HumanMessage:
        """Return the message; raises `RequestError` if it asks nothing or cannot be read."""
        parts = [part for one in blocks if (part := await self._part(one)) is not None]
        has_picture = any(part["type"] != "text" for part in parts)
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        if not text.strip() and not has_picture:
            raise RequestError(-32602, "The prompt is empty: give it text or a picture.")
        content = cast("str | list[str | dict[Any, Any]]", parts if has_picture else text)
        return HumanMessage(content=fix_surrogates(content))

    async def _part(self, block: ContentBlock) -> dict[str, Any] | None:
        match block:
            case TextContentBlock():
                return _text(block.text)
            case ImageContentBlock():
                url = f"data:{block.mime_type};base64,{block.data}"
                return {"type": "image_url", "image_url": {"url": url}}
            case AudioContentBlock():
                ending = block.mime_type.partition("/")[2].partition(";")[0] or "bin"
                return self._add(f"audio-{len(self.files) + 1}.{ending}", _decode(block.data))
            case EmbeddedResourceContentBlock():
                return self._embedded(block.resource)
            case ResourceContentBlock():
                return await self._linked(block)

    def _embedded(self, resource: TextResourceContents | BlobResourceContents) -> dict[str, Any]:
        if isinstance(resource, TextResourceContents):
            return self._add(_name_of(resource.uri), resource.text.encode("utf-8", "replace"))
        return self._add(_name_of(resource.uri), _decode(resource.blob))

    async def _linked(self, link: ResourceContentBlock) -> dict[str, Any]:
        parts = urlsplit(link.uri)
        if parts.scheme != "file":
            return _text(f"{link.name}: {link.uri}")
        if not self.can_read_files:
            return self._leave_out(link, "the editor does not offer its files")
        try:
            read = await self.client.read_text_file(session_id=self.session_id, path=unquote(parts.path))
        except RequestError as error:
            return self._leave_out(link, str(error))
        return self._add(_name_of(link.uri), read.content.encode("utf-8", "replace"))

    def _leave_out(self, link: ResourceContentBlock, reason: str) -> dict[str, Any]:
        self.notes.append(f"{link.name} was not read: {reason}.")
        return _text(f"[The file {link.uri} was linked, but not read: {reason}.]")

    def _add(self, name: str, content: bytes) -> dict[str, Any]:
        self.files.append(SentFile(name, content))
        return _text(f"[The file {name} is attached.]")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _name_of(uri: str) -> str:
    return PurePosixPath(unquote(urlsplit(uri).path)).name or "file"


def _decode(data: str) -> bytes:
    try:
        return decode_content(data)
    except ValueError as error:
        raise RequestError(-32602, "A block has data that are no base64.") from error
