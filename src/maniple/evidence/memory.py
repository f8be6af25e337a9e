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
        self._also: dict[int, dict[str, str]] = {}
        self._redirecting: set[str] = set()
        self._texts: dict[str, str] = {}
        self._read: dict[int, dict[str, None]] = {}
        self._characters = 0

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        reading = Reading.of(url, title, kind, text, asked)
        self._let_go(reading)
        known = [self._numbers[form] for form in reading.addresses if form in self._numbers]
        if not known and not reading.finds_room(len(self._sources)):
            return reading.first(0)
        number = self._joined(reading, known)
        if reading.text and self._keeps(reading):
            for one in {number, *known}:
                self._read.setdefault(one, {})[reading.sha256] = None
        return self._told(number)

    async def sources(self) -> Sequence[Source]:
        return [self._told(number) for number in self._sources]

    async def texts(self, number: int) -> Sequence[str]:
        return [self._texts[digest] for digest in self._read.get(number, ())]

    def _let_go(self, reading: Reading) -> None:
        """Take an address that redirected before, and is a page of its own now, from the source it led to."""
        form = reading.comparable
        if reading.kind == "page" and form in self._redirecting:
            self._redirecting.remove(form)
            del self._also[self._numbers.pop(form)][form]

    def _joined(self, reading: Reading, known: Sequence[int]) -> int:
        """Keep the reading as of the first source that has one of its addresses, or of a new one."""
        number = known[0] if known else len(self._sources) + 1
        if known:
            self._sources[number] = reading.joined(self._sources[number])
        else:
            self._sources[number] = reading.first(number)
            self._numbers[reading.comparable] = number
        for form, url in reading.addresses.items():
            others = len(self._numbers) - len(self._sources)
            if form not in self._numbers and reading.finds_room(others):
                self._numbers[form] = number
                self._also.setdefault(number, {})[form] = url
                if form != reading.comparable:
                    self._redirecting.add(form)
        return number

    def _told(self, number: int) -> Source:
        return replace(self._sources[number], also=tuple(self._also.get(number, {}).values()))

    def _keeps(self, reading: Reading) -> bool:
        """Keep a text, once however often it is read; says whether it is kept."""
        if reading.sha256 not in self._texts:
            if self._characters + len(reading.text) > self._most_characters:
                return False
            self._texts[reading.sha256] = reading.text
            self._characters += len(reading.text)
        return True
