import io
import re
import sys

import pytest
from rich.console import Console, Group
from rich.text import Text

from maniple.cli.render.terminal import LiveRegion


class ReflowingScreen:
    """A terminal that rewraps its lines when its width changes, as most do, and moves the cursor along."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines = [""]
        self._line = self._column = 0

    def play(self, output: str) -> None:
        """Do what was written."""
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", output):
            if token == "\n":
                self._move_rows(1)
            elif token == "\r":
                self._column = self._row_start()
            elif token.endswith("A"):
                self._move_rows(-int(token[2:-1] or 1))
            elif token == "\x1b[J":
                self.lines[self._line :] = [self.lines[self._line][: self._column]]
            elif not token.startswith("\x1b"):
                self._write(token)

    def _write(self, text: str) -> None:
        assert len(text) <= self.width
        line, end = self.lines[self._line].ljust(self._column), self._column + len(text)
        self.lines[self._line] = line[: self._column] + text + line[end:]
        self._column = end

    def _row_start(self) -> int:
        # Behind the last cell of a full row the cursor is still in that row.
        cell = min(self._column, max(0, len(self.lines[self._line]) - 1))
        return cell // self.width * self.width

    def _move_rows(self, by: int) -> None:
        rows = [
            (place, start)
            for place, line in enumerate(self.lines)
            for start in range(0, max(1, len(line)), self.width)
        ]
        row = rows.index((self._line, self._row_start()))
        if row + by == len(rows):
            self.lines.append("")
            rows.append((len(self.lines) - 1, 0))
        self._line, self._column = rows[row + by]


@pytest.mark.parametrize("widths", [(79, 70, 61, 40, 20), (100, 40, 90, 25, 80), (20, 80, 20)])
def test_nothing_of_it_stays_behind_when_the_width_changes(widths: tuple[int, ...]) -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, height=24, force_terminal=True, no_color=True)
    screen = ReflowingScreen(80)
    region = LiveRegion(console, lambda: Group(Text(""), Text("busy " * 40), Text("ends")))

    def show(*, at_width: int) -> None:
        console.print(f"at {at_width}")
        screen.play(file.getvalue())
        file.seek(0)
        file.truncate()

    region.start()
    show(at_width=80)
    for width in widths:
        console.width = screen.width = width
        show(at_width=width)
        assert " ".join(screen.lines).split().count("busy") == 40
        assert " ".join(screen.lines).split().count("ends") == 1
    region.stop()
    screen.play(file.getvalue())
    assert screen.lines == [*(f"at {width}" for width in (80, *widths)), ""]


def test_it_is_never_higher_than_the_screen_and_keeps_its_end() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, height=5, force_terminal=True, no_color=True)
    region = LiveRegion(console, lambda: Group(*(Text(f"line {number}") for number in range(30))))
    region.start()
    assert re.findall(r"line \d+", file.getvalue()) == [f"line {number}" for number in range(25, 30)]
    region.stop()


def test_what_else_writes_to_the_terminal_comes_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    monkeypatch.setattr(sys, "stderr", file)
    console = Console(file=file, width=80, height=5, force_terminal=True, no_color=True)
    region = LiveRegion(console, lambda: Text("busy"))
    region.start()
    print("a warning", file=sys.stderr)
    region.stop()
    screen = ReflowingScreen(80)
    screen.play(file.getvalue())

    assert screen.lines == ["a warning", ""]
    assert sys.stderr is file
