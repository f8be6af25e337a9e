"""Text that a model, a web page or an endpoint wrote, made safe to print."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.events import Event

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: title, clipboard, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\-~]"
)
# C0 and C1 but tab and newline; what turns the direction of writing; halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Those, carriage returns, the other line ends, and what takes no room.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_LINE_END = re.compile("\r\n|[\u2028\u2029\x85]")


def clean(text: str) -> str:
    """Return `text` without what a terminal would obey.

    Of a sequence that is cut in two (by streaming, say) only the escape character goes, so that its
    rest is seen and does nothing.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", _LINE_END.sub("\n", text)))


def exposed(text: str) -> str:
    """Return `text` with everything that cannot be seen, or that a terminal would obey, written out.

    For what a person decides on: nothing of it is left out, and nothing else is shown in its place.
    """
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cleaned(event: "Event") -> "Event":
    """Return the event with every text in it cleaned.

    A question to the person stays as it is: what is decided on must not lose anything, so whoever shows
    it writes it out (`exposed`) instead.
    """
    if event.type == "interrupt":
        return event
    return type(event).model_validate(_clean_all(event.data()))


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_all(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean_all(item) for key, item in value.items()}
    return value
