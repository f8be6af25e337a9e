"""What happened by itself, until somebody looks."""

from maniple.browser.wording import one_line

_MOST = 12
_CHARACTERS = 500


class Notices:
    """Sentences in the order they came; a page cannot make them endless."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._left_out = 0

    def add(self, sentence: str) -> None:
        """Keep a sentence; a repeated one is counted."""
        line = one_line(sentence, _CHARACTERS)
        if line not in self._told and len(self._told) >= _MOST:
            self._left_out += 1
            return
        self._told[line] = self._told.get(line, 0) + 1

    def take(self) -> tuple[str, ...]:
        """Return what was kept and forget it."""
        told = [line if times == 1 else f"{line} ({times} times)" for line, times in self._told.items()]
        if self._left_out:
            told.append(f"({self._left_out} more notices)")
        self._told, self._left_out = {}, 0
        return tuple(told)
