"""Files that come with a message, put into the workspace of its conversation."""

import asyncio
import base64
import binascii
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes
from uuid import uuid4

from maniple.service import Service
from maniple.store import Thread


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came as a part of a message."""

    name: str
    content: bytes


def decode_content(data: str) -> bytes:
    """Return the content of a `data:` URL, or of bare base64; raises ValueError."""
    head, comma, content = data.partition(",")
    if comma and head.startswith("data:") and not head.endswith(";base64"):
        return unquote_to_bytes(content)
    try:
        return base64.b64decode(content if comma else head, validate=True)
    except binascii.Error as error:
        raise ValueError("The content is no base64.") from error


async def store_files(
    service: Service, owner: str, thread_id: str | None, files: Sequence[SentFile]
) -> str | None:
    """Put files into the workspace of a thread, which is made if it does not exist; return the thread's id.

    Raises `FileError` if there is no room for all of them; then none is stored.
    """
    if not files:
        return thread_id
    key = thread_id or str(uuid4())
    if await service.store.threads.get(key, owner) is None:
        now = time.time()
        await service.store.threads.create(Thread(key, owner, "", now, now))

    def store() -> None:
        service.workspaces.open(key)
        service.workspaces.uploads(key).add([(one.name, io.BytesIO(one.content)) for one in files])

    await asyncio.to_thread(store)
    return key
