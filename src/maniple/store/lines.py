"""Events of a run as one text: a line `at type json` for each, numbered by their places.

Without its time a line is `type json`, as earlier versions wrote it: no type begins with a digit.
"""

from collections.abc import Sequence

from maniple.store.records import EventRecord
from maniple.text import whole


def joined(records: Sequence[EventRecord]) -> str:
    """Return the text; raises `ValueError` for gaps in the numbers and for data of several lines."""
    first = records[0].number
    for place, record in enumerate(records, first):
        if record.number != place or "\n" in record.data or " " in record.type or _is_time(record.type):
            raise ValueError(f"event {record.number} ({record.type}) cannot be stored as number {place}")
    return whole("\n".join(map(_line, records)))


def numbered(first: int, text: str) -> list[EventRecord]:
    """Return the events of a text, the first of which has this number."""
    # Not `splitlines`: JSON may hold other line ends than LF.
    return [_record(number, line) for number, line in enumerate(text.split("\n"), first)]


def _line(record: EventRecord) -> str:
    told = f"{record.type} {record.data}"
    return told if record.at is None else f"{record.at:.3f} {told}"


def _record(number: int, line: str) -> EventRecord:
    kind, _, data = line.partition(" ")
    if not _is_time(kind):
        return EventRecord(number, kind, data)
    at = float(kind)
    kind, _, data = data.partition(" ")
    return EventRecord(number, kind, data, at)


def _is_time(word: str) -> bool:
    return word[:1].isdecimal()
