"""A report of a run that read nothing: shown word by word, but for what could only be made up."""

import re

from maniple.evidence.blocks import Blocks
from maniple.evidence.check import SourceCheck, marked

MOST_AHEAD = 8_000
"""Characters of a block that are shown before it is whole; the rest of a longer one waits."""
_MAY_BE_AN_ADDRESS = re.compile(r"[/&\\]|www|\]\(|\w:\w", re.IGNORECASE)
_MAY_CITE = re.compile(r"[/&\\\[【［<>\"“”„‟«»‹›「」『』〝〟｢｣❝❛＂'’‘‚]|www|\w:\w", re.IGNORECASE)


class UncitedDraft:
    """Takes a report as its model writes it; a block waits from what may be a part of an address on.

    Where `check` looks at words, too, it waits from what may begin a citation or a quotation on.
    """

    def __init__(self, check: SourceCheck) -> None:
        self._check = check
        self._waits = _MAY_CITE if check.checks_words else _MAY_BE_AN_ADDRESS
        self._blocks = Blocks()
        self._shown = 0

    async def feed(self, text: str) -> str:
        """Return what may be shown now that `text` has been written."""
        ready = [await self._rest_of(block) for block in self._blocks.feed(text)]
        if self._blocks.pending_characters <= MOST_AHEAD:
            begun = self._blocks.pending
            if not self._waits.search(begun):
                ready.append(begun[self._shown :])
                self._shown = len(begun)
        return "".join(ready)

    async def end(self) -> str:
        """Return the rest of the report."""
        return "".join([await self._rest_of(block) for block in self._blocks.end()])

    async def _rest_of(self, block: str) -> str:
        # What is shown of it holds no part of what may be marked, so that no mark belongs before its end.
        # Nor does the next block, where what ends this one came with words behind it.
        shown, self._shown = self._shown, max(self._shown - len(block), 0)
        return marked(block, await self._check.findings(block))[shown:]
