"""The recorded run that the start page offers to a person who has none of their own yet."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from maniple.replay.player import load_player, title_of

SAMPLE = Path(__file__).with_name("sample_run.gz")
"""Written by `python -m tests.page.sample`."""


@dataclass(frozen=True, slots=True)
class SampleRun:
    """A replay file without its player: `data` are its data blocks."""

    question: str
    sets_math: bool
    data: bytes

    @classmethod
    def unpack(cls, packed: bytes) -> "SampleRun":
        """Return a run that `pack` packed."""
        head, _, data = gzip.decompress(packed).partition(b"\n")
        return cls(**json.loads(head), data=data)

    def pack(self) -> bytes:
        """Return the run compressed: a line of JSON, then the data."""
        head = json.dumps({"question": self.question, "sets_math": self.sets_math})
        return gzip.compress(head.encode() + b"\n" + self.data, mtime=0)

    def file(self) -> bytes:
        """Return the file that plays the run with the player of this version. The first call blocks.

        Raises:
            NotFound: the page has not been built in this clone.
        """
        player = load_player()
        return player.begin(title_of(self.question)) + self.data + player.end(sets_math=self.sets_math)


def load_sample() -> SampleRun:
    """Return the recorded run of this version. Blocks."""
    return SampleRun.unpack(SAMPLE.read_bytes())
