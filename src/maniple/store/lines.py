"""Events of a run as one text: a line `type json` for each, numbered by their places."""

from collections.abc import Sequence

from maniple.store.records import EventRecord
from maniple.text import whole


def joined(records: Sequence[EventRecord]) -> str:
    """Return the text; raises `ValueError` for gaps in the numbers and for data of several lines."""
    first = records[0].number
    for place, record in enumerate(records, first):
        if record.number != place or "\n" in record.data or " " in record.type:
            raise ValueError(f"event {record.number} ({record.type}) cannot be stored as number {place}")
    return whole("\n".join(f"{record.type} {record.data}" for record in records))


def numbered(first: int, text: str) -> list[EventRecord]:
    """Return the events of a text, the first of which has this number."""
    # Not `splitlines`: JSON may hold other line ends than LF.
    return [_record(number, line) for number, line in enumerate(text.split("\n"), first)]


def _record(number: int, line: str) -> EventRecord:
    kind, _, data = line.partition(" ")
    return EventRecord(number, kind, data)
