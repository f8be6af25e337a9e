"""How many tokens of a prompt pictures take, and what is left out first where a prompt becomes too long.

Pictures that a conversation holds are replaced by their names, the oldest first. Pictures that middleware
adds to single requests are counted before (`PictureAdding`) and get a number of tokens: the newest are shown.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import BaseMessage

from maniple.llms.picture_parts import decode_picture, is_picture_part, picture_address
from maniple.reading.pictures import identify_picture
from maniple.text import shorten
from maniple.tools.items import name_picture
from maniple.tools.text_file import escape_unprintable
from maniple.types import is_mapping

Count = Callable[[Sequence[BaseMessage]], int]
NO_ROOM = "it does not fit into your model's window beside the newer ones"
_STATE_KEY = "picture_room"
_ADDRESS_CHARACTERS = 200


@runtime_checkable
class PictureAdding(Protocol):
    """Middleware that adds pictures to requests, inside of the compaction."""

    async def count_pictures(self, request: ModelRequest) -> Sequence[int]:
        """Return the tokens of each picture that a request would get, the newest first."""
        ...


def with_picture_room(request: ModelRequest, tokens: int) -> ModelRequest:
    """Return a request whose added pictures may have at most `tokens` together."""
    state: Any = {**request.state, _STATE_KEY: tokens}
    return request.override(state=state)


def count_fitting(request: ModelRequest, sizes: Sequence[int]) -> int:
    """Return how many pictures, of which `sizes` are the tokens, the newest first, fit into the request."""
    state: Mapping[str, Any] = request.state
    return count_within(sizes, state.get(_STATE_KEY))


def count_within(sizes: Sequence[int], room: int | None) -> int:
    """Return how many of the first sizes have at most `room` together; None is no limit."""
    if room is None:
        return len(sizes)
    for number, size in enumerate(sizes):
        room -= size
        if room < 0:
            return number
    return len(sizes)


def take_picture_room(request: ModelRequest, tokens: int) -> ModelRequest:
    """Return the request for further middleware, after `tokens` of its pictures were shown."""
    state: Mapping[str, Any] = request.state
    room = state.get(_STATE_KEY)
    return request if room is None else with_picture_room(request, max(room - tokens, 0))


def name_older_pictures(
    messages: Sequence[BaseMessage], tokens: int, count: Count, *, left: int = 1
) -> list[BaseMessage]:
    """Return the messages with their oldest pictures replaced by names, as few as make them fit.

    The newest pictures, `left` of them, stay.
    """
    places = [
        (at, place)
        for at, message in enumerate(messages)
        if isinstance(message.content, list)
        for place, part in enumerate(message.content)
        if is_picture_part(part)
    ]
    low, high = 0, max(len(places) - left, 0)
    while low < high:
        middle = (low + high) // 2
        if count(_name_pictures(messages, places[:middle])) <= tokens:
            high = middle
        else:
            low = middle + 1
    return _name_pictures(messages, places[:low])


def _name_pictures(messages: Sequence[BaseMessage], places: Sequence[tuple[int, int]]) -> list[BaseMessage]:
    named = list(messages)
    for at, place in places:
        parts = list(named[at].content)
        parts[place] = {"type": "text", "text": _describe_omission(parts[place])}
        named[at] = named[at].model_copy(update={"content": parts})
    return named


def _describe_omission(part: Any) -> str:
    return f"[{_name_of(part)} was shown here; it is left out, because the conversation is long.]"


def _name_of(part: Any) -> str:
    if not is_mapping(part):
        return "A picture"
    content = decode_picture(part)
    if content:
        info = identify_picture(content)
        if info is None:
            return "A picture"
        name = name_picture(hashlib.sha256(content).hexdigest(), info)
        return f"The picture {name} ({info.width:,} x {info.height:,} pixels)"
    address = picture_address(part)
    if address.startswith(("http://", "https://")):
        return f"The picture {escape_unprintable(shorten(address, _ADDRESS_CHARACTERS))}"
    return "A picture"
