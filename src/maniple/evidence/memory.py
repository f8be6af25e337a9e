"""The record of a run that is kept nowhere else."""

from collections.abc import Sequence
from dataclasses import replace

from maniple.evidence.reading import MOST_CHARACTERS, Reading
from maniple.evidence.record import Source, SourceKind


class MemoryEvidence:
    """See `record.Evidence`; gone with the process. Its texts have at most `characters` together."""

    def __init__(self, characters: int | None = None) -> None:
        self._most_characters = MOST_CHARACTERS if characters is None else characters
        self._sources: dict[int, Source] = {}
        self._numbers: dict[str, int] = {}
        self._others = 0
        self._texts: dict[str, str] = {}
        self._read: dict[int, dict[str, None]] = {}
        self._characters = 0

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        reading = Reading.of(url, title, kind, text, asked)
        known = [self._numbers[form] for form in reading.addresses if form in self._numbers]
        if not known and not reading.finds_room(len(self._sources)):
            return reading.first(0)
        source = self._joined(reading, known)
        if reading.text and self._keeps(reading):
            for number in {source.number, *known}:
                self._read.setdefault(number, {})[reading.sha256] = None
        return source

    async def sources(self) -> Sequence[Source]:
        return [*self._sources.values()]

    async def texts(self, number: int) -> Sequence[str]:
        return [self._texts[digest] for digest in self._read.get(number, ())]

    def _joined(self, reading: Reading, known: Sequence[int]) -> Source:
        """Return the source with the reading, kept: the first that has one of its addresses, or a new one."""
        source = reading.joined(self._sources[known[0]]) if known else reading.first(len(self._sources) + 1)
        for form, url in reading.addresses.items():
            is_other = url != source.url
            if form in self._numbers or (is_other and not reading.finds_room(self._others)):
                continue
            self._numbers[form] = source.number
            if is_other:
                self._others += 1
                source = replace(source, also=(*source.also, url))
        self._sources[source.number] = source
        return source

    def _keeps(self, reading: Reading) -> bool:
        """Keep a text, once however often it is read; says whether it is kept."""
        if reading.sha256 not in self._texts:
            if self._characters + len(reading.text) > self._most_characters:
                return False
            self._texts[reading.sha256] = reading.text
            self._characters += len(reading.text)
        return True
