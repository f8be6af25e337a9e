"""The pictures in the user's messages: items of the thread, also those that are sent as addresses.

No endpoint is sent an address: whether it can be reached from there is unknown, and some end a run with an
error. The nodes see the picture itself in the message, or the reason why it is not there.
"""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage

from maniple.agents.message_pictures import (
    MAX_PICTURES_OF_MESSAGES,
    describe_address,
    describe_lost_pictures,
    find_addresses,
    find_message_pictures,
)
from maniple.errors import FileError, ToolFailure
from maniple.graph.state import PrivateState, State, private_of
from maniple.llms.picture_parts import is_picture_part, picture_address
from maniple.tools.documents import ReadRendered
from maniple.tools.items import ThreadItems
from maniple.tools.web_pictures import WebPictures
from maniple.types import is_list

_MAX_PARALLEL = 4


@dataclass(frozen=True, slots=True)
class SentPictures:
    """Stores the pictures of messages, and shows those at addresses in messages."""

    items: ThreadItems
    web: WebPictures | None = None
    """None where nothing is fetched; the addresses are then named."""
    read: ReadRendered | None = None
    """Reads the stored pictures."""

    async def store(self, state: State, messages: Sequence[BaseMessage]) -> PrivateState:
        """Store the pictures of the user's new messages; return what is known of them now."""
        found = await asyncio.to_thread(find_message_pictures, messages)
        paths, lost = await self._fetch_all(find_addresses(messages))
        known = {**(private_of(state).get("web_pictures") or {}), **paths}
        notes = [*describe_lost_pictures(messages, paths), *await self.items.add_pictures(found)]
        return {"lost_pictures": [*notes, *lost], "web_pictures": known}

    async def _fetch_all(self, addresses: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Return the path of each picture by its address, and a sentence about each that is not there."""
        if self.web is None:
            return {}, []
        newest, slots = addresses[-MAX_PICTURES_OF_MESSAGES:], asyncio.Semaphore(_MAX_PARALLEL)
        paths: dict[str, str] = dict.fromkeys(addresses, "")
        lost = [
            f"{describe_address(one)}: only {MAX_PICTURES_OF_MESSAGES} pictures are fetched."
            for one in addresses[: len(addresses) - len(newest)]
        ]
        web = self.web

        async def fetch(address: str) -> str:
            try:
                async with slots:
                    paths[address] = await web.add(address)
            except ToolFailure as error:
                return f"{describe_address(address)}: it could not be fetched. {error}"
            return ""

        return paths, [*lost, *filter(None, await asyncio.gather(*map(fetch, newest)))]

    async def show(self, state: State) -> State:
        """Return the state with the pictures at addresses, or a note, in its messages."""
        paths: Mapping[str, str] = private_of(state).get("web_pictures") or {}
        if not paths:
            return state
        messages = [await self._show(message, paths) for message in state["messages"]]
        return cast("State", {**state, "messages": messages})

    async def _show(self, message: Any, paths: Mapping[str, str]) -> Any:
        content: Any = message.content
        if not is_list(content) or not any(_address_in(part, paths) for part in content):
            return message
        parts = [await self._part(part, paths) for part in content]
        return message.model_copy(update={"content": parts})

    async def _part(self, part: Any, paths: Mapping[str, str]) -> Any:
        address = _address_in(part, paths)
        if not address:
            return part
        picture = await self._read(paths[address]) if paths[address] else None
        if picture is None:
            text = f"[A picture at {describe_address(address)} was sent here; it could not be fetched.]"
            return {"type": "text", "text": text}
        return {"type": "image_url", "image_url": {"url": picture}}

    async def _read(self, path: str) -> str | None:
        """Return a picture as a data URL, scaled for models; None if it is gone or damaged."""
        if self.read is None:
            return None
        try:
            picture = await self.read(path)
        except FileError:
            return None
        return f"data:{picture.media_type};base64,{base64.b64encode(picture.content).decode()}"


def _address_in(part: Any, paths: Mapping[str, str]) -> str:
    """Return the address of a picture that the first node knows; "" for anything else."""
    address = picture_address(part) if is_picture_part(part) else ""
    return address if address in paths else ""
