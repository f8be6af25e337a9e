"""Who calls, and the check of the keys of those that stay connected."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from maniple.errors import ManipleError, StoreError
from maniple.store import ApiKeyTable, EventRecord

CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: `owner` is the id of the API key, "" where no key is needed."""

    owner: str = ""
    is_admin: bool = False
    """Whether the caller may change what all share: with such a key, or from this machine without keys."""


class KeyRevoked(ManipleError):
    """The key of an open stream was revoked."""

    code = "key_revoked"


class KeyWatch:
    """Checks the keys of open streams in the store, each at most once a second."""

    def __init__(self, keys: ApiKeyTable) -> None:
        self._keys = keys
        self._checked: dict[str, tuple[float, bool]] = {}

    async def pages(
        self, owner: str, source: AsyncIterator[Sequence[EventRecord]]
    ) -> AsyncGenerator[Sequence[EventRecord]]:
        """Yield the pages of `source`; raises `KeyRevoked` within two seconds of the key's revocation."""
        if not owner:
            async for page in source:
                yield page
            return
        revoked = asyncio.create_task(self._revoked(owner))
        try:
            while page := await _next(source, revoked):
                yield page
        finally:
            revoked.cancel()

    async def _revoked(self, key_id: str) -> None:
        while True:
            if await self._is_revoked(key_id):
                return
            await asyncio.sleep(CHECK_SECONDS)

    async def _is_revoked(self, key_id: str) -> bool:
        asked_at, revoked = self._checked.get(key_id, (float("-inf"), False))
        if not revoked and time.monotonic() - asked_at >= CHECK_SECONDS:
            # Stored first, so that the key's other streams do not query as well.
            self._checked[key_id] = (time.monotonic(), False)
            with suppress(StoreError):  # checked again in a second
                key = await self._keys.get(key_id)
                revoked = key is None or key.revoked_at is not None
                self._checked[key_id] = (time.monotonic(), revoked)
        return revoked


async def _next(
    source: AsyncIterator[Sequence[EventRecord]], revoked: asyncio.Task[None]
) -> Sequence[EventRecord] | None:
    page = asyncio.ensure_future(anext(source, None))
    try:
        await asyncio.wait((page, revoked), return_when=asyncio.FIRST_COMPLETED)
        if revoked.done():
            raise KeyRevoked("The API key was revoked. The run continues.")
        return await page
    finally:
        page.cancel()
        await asyncio.wait((page,))
        if not page.cancelled():
            page.exception()  # Otherwise asyncio warns that the exception was not retrieved.
