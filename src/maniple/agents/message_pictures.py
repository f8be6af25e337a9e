"""The pictures in the content parts of messages, in the forms of OpenAI, LangChain and Anthropic."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from maniple.llms.picture_parts import decode_picture, is_picture_part, picture_address
from maniple.text import fix_surrogates, shorten
from maniple.tools.documents import is_address
from maniple.types import is_mapping

MAX_PICTURES_OF_MESSAGES = 20
_ADDRESS_CHARACTERS = 500


def find_message_pictures(messages: Iterable[BaseMessage]) -> list[bytes]:
    """Return the bytes of the newest pictures that messages hold themselves, oldest first.

    Pictures at addresses are not among them, nor data that is no valid Base64.
    """
    found = [content for message in messages for content in _pictures_of(message)]
    return found[-MAX_PICTURES_OF_MESSAGES:]


def find_addresses(messages: Iterable[BaseMessage]) -> list[str]:
    """Return the web addresses of the pictures that messages do not hold themselves, each once."""
    parts = (one for message in messages for one in _parts_of(message) if is_picture_part(one))
    return list(dict.fromkeys(filter(is_address, map(picture_address, parts))))


def describe_address(address: str) -> str:
    """Return an address for a prompt."""
    return fix_surrogates(shorten(address, _ADDRESS_CHARACTERS))


def describe_lost_pictures(messages: Iterable[BaseMessage], fetched: Container[str] = ()) -> list[str]:
    """Return a sentence about each picture that messages do not hold, and about those beyond the limit.

    The addresses in `fetched` are left out.
    """
    parts = [one for message in messages for one in _parts_of(message) if is_picture_part(one)]
    decoded = [decode_picture(one) for one in parts]
    notes = [
        _describe_loss(one)
        for one, content in zip(parts, decoded, strict=True)
        if not content and picture_address(one) not in fetched
    ]
    if (more := sum(map(bool, decoded)) - MAX_PICTURES_OF_MESSAGES) > 0:
        most = MAX_PICTURES_OF_MESSAGES
        notes.append(f"The oldest of the messages' pictures ({more}): only {most} are stored.")
    return notes


def _describe_loss(part: Mapping[str, Any]) -> str:
    address = picture_address(part)
    if is_address(address):
        return (
            f"{describe_address(address)}: a picture at an address is not fetched with the message. Who "
            "reads web pages may open it; the user may upload it as a file."
        )
    return "A picture whose data cannot be read: it is no Base64 of a picture. The user may send it again."


def _pictures_of(message: BaseMessage) -> Iterator[bytes]:
    yield from filter(None, map(decode_picture, _parts_of(message)))


def _parts_of(message: BaseMessage) -> list[Mapping[str, Any]]:
    parts = message.content if isinstance(message.content, list) else []
    return [part for part in parts if is_mapping(part)]
