"""What the API answers. Whoever runs in the sandbox, and any page shown there, may have written it."""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.browser.words import safe
from maniple.errors import BrowserError
from maniple.text import whole

MAX_BYTES = 16_000_000
"""Of an answer: a picture of the window fits in ten times."""
_MAX_CONTROLS = 3_000
_MAX_NAME_CHARACTERS = 120
_MAX_ADDRESS_CHARACTERS = 2_000
_MAX_CONTENT_CHARACTERS = 200_000
_MAX_PIXELS = 10_000_000
_JPEG = b"\xff\xd8\xff"

# `[3]<input type="text"> Name </>`, one a line: how the API lists controls for a model.
_LINE = re.compile(r"\[(\d{1,6})\]<([a-zA-Z][\w-]{0,30})([^>]{0,2000})>(.*)")
_ATTRIBUTE = re.compile(r'([\w-]{1,30})="([^"]{0,500})"')
_TOLD = ("type", "role", "placeholder", "alt", "title", "name", "id", "href", "src")
_NAMES = ("placeholder", "alt", "title", "name", "id")


@dataclass(frozen=True, slots=True)
class Control:
    """A control as the API describes it."""

    index: int
    tag: str
    text: str
    in_view: bool
    attributes: tuple[tuple[str, str], ...]

    @property
    def is_password(self) -> bool:
        """Whether what is typed there must not be shown."""
        return ("type", "password") in self.attributes

    @property
    def role(self) -> str:
        """What it is to a person, such as `button`, `input email`."""
        attributes = dict(self.attributes)
        kind = attributes.get("type", "") if self.tag == "input" else ""
        words = attributes.get("role") or f"{self.tag} {kind}"
        return re.sub(r"[^\w -]", "", words).strip()[:40] or "element"

    @property
    def name(self) -> str:
        """Its text, without the value of a password; else what comes nearest; "" when nothing does."""
        attributes = dict(self.attributes)
        text = "" if self.is_password else self.text
        return text or next((attributes[key] for key in _NAMES if attributes.get(key)), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; of a failure often only the message is filled."""

    success: bool
    message: str
    url: str
    """"" when it does not say where the browser is, and so nothing of a page either."""
    title: str
    controls: tuple[Control, ...]
    pixels_above: int
    pixels_below: int
    viewport_height: int
    content: str
    screenshot: bytes | None


def read_answer(body: bytes) -> Answer:
    """Read an answer's body. Blocks for as long as so many bytes take: call it in a thread.

    Raises:
        BrowserError: it is not the JSON of such an answer, as when it was cut off.
    """
    try:
        told = whole(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise BrowserError("The sandbox's browser sent an answer that cannot be read; try again.") from error
    if not isinstance(told, dict) or not isinstance(told.get("success"), bool):
        raise BrowserError("What answered is no browser of a sandbox; check browser.sandbox_url.")
    return Answer(
        success=told["success"],
        message=_line(told.get("message") or told.get("error"), 500),
        url=_address(told.get("url")),
        title=_line(told.get("title"), 500),
        controls=tuple(_controls(told)),
        pixels_above=_pixels(told.get("pixels_above")),
        pixels_below=_pixels(told.get("pixels_below")),
        viewport_height=_pixels(told.get("viewport_height")),
        content=_text(told.get("content"))[:_MAX_CONTENT_CHARACTERS],
        screenshot=_picture(_text(told.get("screenshot_base64"))),
    )


def _controls(told: Mapping[str, Any]) -> Iterator[Control]:
    rows = told.get("interactive_elements")
    if isinstance(rows, list):
        found = (_of_row(row) for row in rows[:_MAX_CONTROLS] if isinstance(row, dict))
    else:
        lines = _text(told.get("elements")).splitlines()[:_MAX_CONTROLS]
        found = (_of_line(line) for line in lines)
    seen: set[int] = set()
    for control in found:
        if control is not None and control.index not in seen:
            seen.add(control.index)
            yield control


def _of_row(row: Mapping[str, Any]) -> Control | None:
    index = row.get("index")
    if type(index) is not int or not 0 <= index < 1_000_000:
        return None
    attributes = tuple((key, _line(row[key], 500)) for key in _TOLD if row.get(key))
    tag = re.sub(r"[^a-z0-9-]", "", _line(row.get("tag_name"), 30).lower())
    text = _line(row.get("text"), _MAX_NAME_CHARACTERS)
    return Control(index, tag or "element", text, row.get("is_in_viewport") is not False, attributes)


def _of_line(line: str) -> Control | None:
    if (match := _LINE.match(line.strip())) is None:
        return None
    index, tag, attributes, text = match.groups()
    told = {key: _line(value, 500) for key, value in _ATTRIBUTE.findall(attributes)}
    name = _line(text.removesuffix("</>"), _MAX_NAME_CHARACTERS)
    return Control(
        int(index), tag.lower(), name, True, tuple((key, told[key]) for key in _TOLD if key in told)
    )


def _picture(encoded: str) -> bytes | None:
    try:
        picture = base64.b64decode(encoded.partition("base64,")[2] or encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return picture if picture.startswith(_JPEG) else None


def _line(value: Any, longest: int) -> str:
    return safe(_text(value), longest)


def _address(value: Any) -> str:
    address = _text(value)[:_MAX_ADDRESS_CHARACTERS]
    return "".join(one for one in address if one.isprintable() and one != " ")


def _pixels(value: Any) -> int:
    if not isinstance(value, int | float) or not 0 <= value <= _MAX_PIXELS:
        return 0
    return int(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
