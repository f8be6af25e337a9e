"""Pictures at web addresses: those that the user sent, and those of pages that were read, on demand.

They are fetched as pages are, from public addresses only, and become files of the thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from maniple.errors import FileError
from maniple.evidence import Evidence
from maniple.outgoing import OutgoingGuard
from maniple.scope.run_scope import run_key, thread_key
from maniple.text import shorten
from maniple.tools.documents import OpenedFile
from maniple.tools.evidence import current_evidence
from maniple.tools.items import ThreadItems
from maniple.tools.picture_origins import PictureOrigin
from maniple.tools.web import name_picture, name_site

FetchPicture = Callable[[str], Awaitable[bytes]]
"""Returns the picture at an address; raises `FetchError` with the reason why it cannot be had."""
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class WebPictures:
    """Fetches pictures and stores them in the current thread."""

    fetch: FetchPicture
    items: ThreadItems
    guard: OutgoingGuard = field(default_factory=OutgoingGuard)

    async def add(self, url: str) -> str:
        """Store a picture that the user names as an upload, and return its path.

        Raises `FetchError`, `SecretRefused`, and `FileError` if there is no room for it.
        """
        content = await self._read(url)
        origin = PictureOrigin("web", url, run=run_key())
        return await self.items.add_picture(name_picture(url), content, origin)

    async def open(self, url: str) -> OpenedFile:
        """Store a picture that a page of the thread names, to be shown.

        Only those: an address that a member makes up could carry what it has read to somebody else. Raises as
        `add` does.
        """
        url, evidence = url.strip(), current_evidence()
        if evidence is None or not await _is_named(evidence, url):
            raise FileError(
                f"No page that this conversation has read names {shorten(url, _SHOWN_CHARACTERS)}. Name a "
                "file by its path, or a picture by its address as it stands in a page."
            )
        origin = PictureOrigin("web", url, run=run_key())
        path = await self.items.store_picture(name_picture(url), await self._read(url), origin)
        return OpenedFile(f"[The picture is kept as {path}]", [path])

    async def _read(self, url: str) -> bytes:
        await asyncio.to_thread(self.guard.check, url, by="a picture", thread=thread_key(), to=name_site(url))
        return await self.fetch(url)


async def _is_named(evidence: Evidence, url: str) -> bool:
    for source in reversed(await evidence.sources()):
        if source.kind == "page":
            texts = await evidence.texts(source.number)
            if source.url == url or await asyncio.to_thread(_is_in, url, texts):
                return True
    return False


def _is_in(url: str, texts: Sequence[str]) -> bool:
    return any(url in text for text in texts)
