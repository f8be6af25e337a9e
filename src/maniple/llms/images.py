"""Pictures in messages."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

PLACEHOLDER = {"type": "text", "text": "[A picture was sent here; the model cannot see pictures.]"}
_IMAGE_TYPES = frozenset({"image", "image_url"})


def has_images(message: BaseMessage) -> bool:
    """Say whether a message carries a picture."""
    return isinstance(message.content, list) and any(_is_image(part) for part in message.content)


def without_images(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with a sentence in place of each picture."""
    return [_named(message) if has_images(message) else message for message in messages]


def _named(message: BaseMessage) -> BaseMessage:
    content = [PLACEHOLDER if _is_image(part) else part for part in message.content]
    return message.model_copy(update={"content": content})


def _is_image(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _IMAGE_TYPES
