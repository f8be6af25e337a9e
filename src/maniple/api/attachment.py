"""Files as attachments: a browser saves them and never shows or runs them here."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from maniple.media_types import media_type_of

HEADERS = {
    "content-security-policy": "sandbox",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-store",
}
ATTACHMENT = {"description": "The file, as an attachment", "content": {"*/*": {}}}
_PIECE_BYTES = 256 * 1024


class OpenFileResponse(StreamingResponse):
    """The content of an open file, which is closed afterwards. It is not looked for by its name again."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        size = os.fstat(file.fileno()).st_size
        headers = {**HEADERS, "content-length": str(size), "content-disposition": called(name)}
        media_type = media_type_of(name)
        super().__init__(_pieces(file, size), headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def called(name: str) -> str:
    """Return the `Content-Disposition` of a file that is to be saved under `name`."""
    return f"attachment; filename*=utf-8''{quote(name, safe='')}"


async def _pieces(file: BinaryIO, left: int) -> AsyncIterator[bytes]:
    """Yield what the file held when it was opened; it may have become longer since."""
    while left > 0 and (piece := await asyncio.to_thread(file.read, min(left, _PIECE_BYTES))):
        left -= len(piece)
        yield piece
