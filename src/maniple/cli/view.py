"""What shows a run to somebody, and the choice of it."""

import json
import re
from collections.abc import Sequence
from typing import IO, Protocol

from maniple.cli.tally import Tally
from maniple.events import Event


class View(Protocol):
    """Shows one run; a context that is entered when the run starts."""

    async def __aenter__(self) -> "View": ...

    async def __aexit__(self, *exception: object) -> None: ...

    def show(self, number: int, event: Event) -> None:
        """Show the next event. Its texts may be anything: a view for people prints them cleaned."""
        ...

    def say(self, text: str) -> None:
        """Tell the person something that is not of the run."""
        ...

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """Show the last exchange of a conversation, and the events that say what is waited for."""
        ...

    def finish(self, tally: Tally) -> None:
        """Show what the run came to, after its last event."""
        ...


# `json` escapes only C0; the others reach the terminal of whoever looks at the lines.
_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_line(value: object) -> str:
    """Return `value` as JSON in one line that is safe to look at."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class JsonView:
    """Writes each event as one line of JSON to `output`; words go to `notes`."""

    def __init__(self, output: IO[str], notes: IO[str]) -> None:
        self._output = output
        self._notes = notes

    async def __aenter__(self) -> "JsonView":
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    def show(self, number: int, event: Event) -> None:
        """Write the event's line."""
        line = json_line({"id": number, "event": event.type, "data": event.data()})
        print(line, file=self._output, flush=True)

    def say(self, text: str) -> None:
        """Write to the notes."""
        print(text, file=self._notes, flush=True)

    def recall(self, asked: str, answer: str, waiting: Sequence[Event]) -> None:
        """The lines are of runs that are under way."""

    def finish(self, tally: Tally) -> None:
        """The events have said it."""
