"""The two places to print to."""

from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from maniple.cli.plain import PlainView
from maniple.cli.progress import ProgressBar, ProgressLines
from maniple.cli.render import TerminalView
from maniple.cli.untrusted import clean
from maniple.cli.view import JsonView, View


@dataclass(frozen=True, slots=True)
class Screens:
    """`output` (stdout) is for what was asked for, `notes` (stderr) for all else."""

    output: Console
    notes: Console

    @classmethod
    def of_this_process(cls, *, color: bool = True) -> "Screens":
        """Return stdout and stderr; rich itself honours NO_COLOR."""
        no_color = None if color else True
        return cls(Console(no_color=no_color), Console(no_color=no_color, stderr=True))

    @property
    def is_live(self) -> bool:
        """Say whether the output can be redrawn."""
        return self.output.is_terminal and not self.output.is_dumb_terminal

    def note(self, text: str, style: str = "") -> None:
        """Say something beside the output; `text` may come from anywhere."""
        self.notes.print(Text(clean(text), style=style), soft_wrap=not self.notes.is_terminal)

    def view(self, *, json: bool = False) -> View:
        """Return a view for one run."""
        if json:
            return JsonView(self.output.file, self.notes.file)
        if self.is_live:
            return TerminalView(self.output)
        return PlainView(self.output.file, self.notes.file)

    def progress(self) -> ProgressBar | ProgressLines:
        """Return what shows how far the start is."""
        live = self.notes.is_terminal and not self.notes.is_dumb_terminal
        return ProgressBar(self.notes) if live else ProgressLines(self.notes.file)
