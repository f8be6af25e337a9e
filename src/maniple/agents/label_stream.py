"""Labels of outcomes (`PARTIAL:`, `NEEDS:`) in a text that is streamed: shown in words, as in the result."""

from maniple.agents.outcome_labels import HEADING, may_become_label, say_label
from maniple.agents.step_outcome import CODE_FENCE

_FENCE_LENGTH = 3


class LabelStream:
    """Replaces the labels at the beginnings of lines; what may become one waits for the next piece."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False
        """Whether the rest of the line passes as it is."""
        self._fence = ""
        self._is_first = True
        """Whether nothing but headings was written before the line."""

    def feed(self, text: str) -> str:
        """Return what can be shown now, perhaps nothing."""
        return "".join(self._feed_piece(piece) for piece in text.splitlines(keepends=True))

    def end(self) -> str:
        """Return the rest."""
        rest = self._decide(self._held, is_whole=True) or "" if self._held else ""
        self._held, self._is_decided = "", False
        return rest

    def _feed_piece(self, piece: str) -> str:
        is_end = piece.endswith("\n")
        if self._is_decided:
            self._is_decided = not is_end
            return piece
        self._held += piece
        shown = self._decide(self._held, is_whole=is_end)
        if shown is None:
            return ""
        self._held, self._is_decided = "", not is_end
        return shown

    def _decide(self, line: str, *, is_whole: bool) -> str | None:
        """Return the beginning of a line as it is shown; None as long as that is unknown."""
        body = line.rstrip("\r\n")
        if not is_whole and not body.strip("`~> \t") and len(body.strip()) < _FENCE_LENGTH:
            return None  # it may become a fence of code
        if self._fence or CODE_FENCE.match(body):
            self._follow_fence(body)
            self._is_first = False
            return line
        if not is_whole and may_become_label(body, is_first=self._is_first):
            return None
        words = say_label(body, is_first=self._is_first)
        if body.strip() and not HEADING.match(body):
            self._is_first = False
        return line if words is None else words + line[len(body) :]

    def _follow_fence(self, line: str) -> None:
        mark = CODE_FENCE.match(line)
        if mark and not self._fence:
            self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence):
            self._fence = ""
