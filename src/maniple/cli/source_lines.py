"""What a run has read, for its person."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from maniple.cli.words import one_line
from maniple.evidence import Source


def source_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Yield two lines for each source: number, title, kind and local time, then the address."""
    for one in sources:
        at = datetime.fromtimestamp(one.retrieved_at).astimezone()
        yield f"[{one.number}] {one_line(one.title, 100)} ({one.kind}, {at:%Y-%m-%d %H:%M})"
        yield f"    {one.url}"
