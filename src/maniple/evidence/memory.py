"""The record of a run that is kept nowhere else."""

from collections.abc import Sequence

from maniple.evidence.reading import MOST_CHARACTERS, Reading
from maniple.evidence.record import Source, SourceKind


class MemoryEvidence:
    """See `record.Evidence`; gone with the process. Its texts have at most `characters` together."""

    def __init__(self, characters: int | None = None) -> None:
        self._most_characters = MOST_CHARACTERS if characters is None else characters
        self._sources: dict[str, Source] = {}
        self._texts: dict[str, str] = {}
        self._read: dict[int, dict[str, None]] = {}
        self._characters = 0

    async def add(self, url: str, title: str, kind: SourceKind, text: str) -> Source:
        reading = Reading.of(url, title, kind, text)
        known = self._sources.get(reading.comparable)
        if known is None and not reading.finds_room(len(self._sources)):
            return reading.first(0)
        source = reading.joined(known) if known else reading.first(len(self._sources) + 1)
        self._sources[reading.comparable] = source
        if reading.text and self._keeps(reading):
            self._read.setdefault(source.number, {})[reading.sha256] = None
        return source

    async def sources(self) -> Sequence[Source]:
        return [*self._sources.values()]

    async def texts(self, number: int) -> Sequence[str]:
        return [self._texts[digest] for digest in self._read.get(number, ())]

    def _keeps(self, reading: Reading) -> bool:
        """Keep a text, once however often it is read; says whether it is kept."""
        if reading.sha256 not in self._texts:
            if self._characters + len(reading.text) > self._most_characters:
                return False
            self._texts[reading.sha256] = reading.text
            self._characters += len(reading.text)
        return True
