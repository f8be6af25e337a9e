"""What a key hears that is revoked while it listens."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress

from maniple.errors import ManipleError, StoreError
from maniple.store import ApiKeyTable, EventRecord

ASK_SECONDS = 1.0


class KeyRevoked(ManipleError):
    """The key that follows was revoked."""

    code = "key_revoked"


class KeyWatch:
    """Asks the store about the keys whose streams are open, about each at most once a second."""

    def __init__(self, keys: ApiKeyTable) -> None:
        self._keys = keys
        self._asked: dict[str, tuple[float, bool]] = {}

    async def pages(
        self, owner: str, told: AsyncIterator[Sequence[EventRecord]]
    ) -> AsyncGenerator[Sequence[EventRecord]]:
        """Yield what is `told`; raises `KeyRevoked` within two seconds of the revocation of `owner`'s key."""
        if not owner:
            async for page in told:
                yield page
            return
        revoked = asyncio.create_task(self._revoked(owner))
        try:
            while page := await _next(told, revoked):
                yield page
        finally:
            revoked.cancel()

    async def _revoked(self, key_id: str) -> None:
        while True:
            if await self._is_revoked(key_id):
                return
            await asyncio.sleep(ASK_SECONDS)

    async def _is_revoked(self, key_id: str) -> bool:
        asked_at, revoked = self._asked.get(key_id, (float("-inf"), False))
        if not revoked and time.monotonic() - asked_at >= ASK_SECONDS:
            # Noted first: the key's other streams do not ask, too.
            self._asked[key_id] = (time.monotonic(), False)
            with suppress(StoreError):  # asked again in a second; what is told fails by itself
                key = await self._keys.get(key_id)
                revoked = key is None or key.revoked_at is not None
                self._asked[key_id] = (time.monotonic(), revoked)
        return revoked


async def _next(
    told: AsyncIterator[Sequence[EventRecord]], revoked: asyncio.Task[None]
) -> Sequence[EventRecord] | None:
    page = asyncio.ensure_future(anext(told, None))
    try:
        await asyncio.wait((page, revoked), return_when=asyncio.FIRST_COMPLETED)
        if revoked.done():
            raise KeyRevoked("The API key was revoked. The run goes on.")
        return await page
    finally:
        page.cancel()
        await asyncio.wait((page,))
        if not page.cancelled():
            page.exception()  # else asyncio complains that nobody looked
