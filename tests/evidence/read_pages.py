"""A record of what was read, for checks of reports."""

from maniple.evidence.record import Source


class Read:
    """A record that holds what the test gives it: address, title and text of each source."""

    def __init__(self, *read: tuple[str, str, str]) -> None:
        self._texts = [text for _, _, text in read]
        self._sources = [
            Source(number, url, title, "page", 0.0, "")
            for number, (url, title, _) in enumerate(read, start=1)
        ]

    async def add(self, url, title, kind, text):
        raise NotImplementedError

    async def findings(self):
        return []

    async def unread(self):
        return []

    async def sources(self):
        return self._sources

    async def texts(self, number):
        return [self._texts[number - 1]]
