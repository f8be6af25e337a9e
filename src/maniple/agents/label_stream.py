"""Labels of outcomes (`PARTIAL:`, `NEEDS:`) in a text that is streamed: shown in words, as in the result."""

import re

from maniple.agents.step_outcome import ABOUT_ANOTHER_STEP, CODE_FENCE, LABEL, MARKS, say_label

_NAMES = ("PARTIAL", "PARTIALLY DONE", "STEP PARTIAL", "STEP_PARTIAL", "MISSING", "NEEDS", "NEED")
_MARKS = re.compile(MARKS)
_AFTER_NAME = re.compile(
    r"[ \t*_`]{0,10}(?:\([^()\n]{0,60}\)?)?[ \t*_`]{0,10}(?:[:：|]|[-–—=](?=\s|$))?[ \t*_`]{0,10}"
)
"""What may follow the name of a label before its text begins."""
_MAX_MARKS = 24
_FENCE_LENGTH = 3


class LabelStream:
    """Replaces the labels at the beginnings of lines; what may become one waits for the next piece."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False
        """Whether the rest of the line passes as it is."""
        self._fence = ""

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
            return line
        if not is_whole and _may_become_label(body):
            return None
        found = LABEL.match(body)
        words = say_label(found) if found else None
        return line if words is None else words + line[len(body) :]

    def _follow_fence(self, line: str) -> None:
        mark = CODE_FENCE.match(line)
        if mark and not self._fence:
            self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence):
            self._fence = ""


def _may_become_label(line: str) -> bool:
    marks = _MARKS.match(line)
    rest = line[marks.end() :] if marks else line
    if not rest:
        return len(line) < _MAX_MARKS
    if any(name.startswith(rest) for name in _NAMES):
        return True
    return any(_may_go_on(rest[len(name) :]) for name in _NAMES if rest.startswith(name))


def _may_go_on(after: str) -> bool:
    """Return whether what follows the name of a label may still become its separator, or another step's."""
    end = _AFTER_NAME.match(after)
    text = after[end.end() :] if end else after
    return not text or ABOUT_ANOTHER_STEP.startswith(text)
