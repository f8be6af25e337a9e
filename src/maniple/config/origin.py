"""Where settings stand written, for those who find a mistake in them later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maniple.config.sources import Keys


@dataclass(frozen=True, slots=True)
class Origin:
    """The folder of conf.yaml, and the line of each key. Equal settings may stand anywhere."""

    folder: Path | None = field(default=None, compare=False)
    places: Mapping[Keys, str] = field(default_factory=dict, compare=False)

    def place_of(self, keys: Keys) -> str:
        """Return where a key stands, or else what is nearest to it: `conf.yaml, line 12` and so on."""
        if place := self.places.get(keys):
            return place
        # A variable of an unknown section stands for the section.
        if inside := next((p for below, p in self.places.items() if below[: len(keys)] == keys), None):
            return inside
        for length in range(len(keys) - 1, 0, -1):
            if place := self.places.get(keys[:length]):
                return place
        return "settings"
