"""Pictures for a team of small models: one that sees describes them, else the answer says that none does."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from maniple.agents.middleware.item_pictures import ItemPictureReader
from maniple.errors import FileError
from maniple.text import shorten
from maniple.tools.items import is_picture

MAX_DESCRIBED = 2
"""The newest pictures: a description takes a tenth of a small model's window."""
DESCRIPTION_CHARACTERS = 900
_QUOTES = str.maketrans("", "", "\"'“”")


@dataclass(frozen=True, slots=True)
class SeenPictures:
    """What is known of the user's pictures without seeing them."""

    descriptions: Sequence[str] = ()
    unseen: Sequence[str] = ()
    """The names of the pictures that no model sees."""

    def extend(self, request: str) -> str:
        """Return a request with what the pictures show."""
        # Without names and quotation marks: what a request quotes is looked for in programs.
        lines = [f"A picture of the user shows: {one.translate(_QUOTES)}" for one in self.descriptions]
        return "\n".join([request, *lines])


@dataclass(frozen=True, slots=True)
class CompactPictures:
    """Finds out what the user's pictures show."""

    reader: ItemPictureReader

    async def look(self, files: Sequence[str], model: BaseChatModel) -> SeenPictures:
        """Return what the newest pictures in `files` show, described by a model of the settings that sees.

        `files` are lines such as `chart.png (12 kB)`. If no other model sees, `model` itself is asked, unless
        it is known not to see.
        """
        descriptions: list[str] = []
        unseen: list[str] = []
        names = find_pictures(files)
        for at, name in enumerate(names):
            text = await self._describe(name, model) if at >= len(names) - MAX_DESCRIBED else ""
            if text:
                descriptions.append(shorten(text, DESCRIPTION_CHARACTERS))
            else:
                unseen.append(name)
        return SeenPictures(descriptions, unseen)

    async def _describe(self, name: str, model: BaseChatModel) -> str:
        try:
            picture = await self.reader.read(name)
        except FileError:
            return ""
        return await self.reader.describer.find_description(picture, model)


def find_pictures(files: Sequence[str]) -> list[str]:
    """Return the names of the pictures among the lines about files."""
    return [name for line in files if is_picture(name := line.rpartition(" (")[0])]


def without_names(request: str, names: Collection[str]) -> str:
    """Return a request without names of files, in any case of its letters."""
    for name in names:
        while (at := request.casefold().find(name.casefold())) >= 0:
            request = request[:at] + request[at + len(name) :]
    return request
