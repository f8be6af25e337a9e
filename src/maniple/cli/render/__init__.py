"""How the terminal shows a run: a live view on a terminal, plain lines elsewhere, or JSON lines."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.text import Text

from maniple.cli.render.links import can_show_links, link_addresses
from maniple.cli.render.plain import JsonDisplay, PlainDisplay
from maniple.cli.render.startup import StartupBar, StartupLines
from maniple.cli.render.wrapping import hang_words
from maniple.cli.text import clean
from maniple.events import Event, RunView

if TYPE_CHECKING:
    from maniple.agents.team_models import Answering


class RunDisplay(Protocol):
    """Shows one run. It is a context manager, entered when the run starts."""

    async def __aenter__(self) -> "RunDisplay": ...

    async def __aexit__(self, *exception: object) -> None: ...

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Show the next event; `run` is the state after it. Both hold untrusted text."""
        ...

    def note(self, text: str) -> None:
        """Print a line that is not part of the run."""
        ...

    def show_typed(self, typed: Callable[[], str]) -> bool:
        """Show from now on what the user types; return whether that is possible here."""
        ...

    def show_previous(self, question: str, run: RunView) -> None:
        """Show the last exchange of a conversation, and what its run waits for."""
        ...

    def finish(self, run: RunView, seconds: float) -> None:
        """Show the outcome of the run after its last event; `seconds` is how long it was shown."""
        ...


@dataclass(frozen=True, slots=True)
class Consoles:
    """The two outputs of the program: `output` (stdout) for results, `notes` (stderr) for all else."""

    output: Console
    notes: Console
    verbose: bool = False
    """Whether the errors of failed steps are shown, beside the sentences about them."""
    links: bool = False
    """Whether a click on an address in the output opens it."""

    @classmethod
    def of_this_process(cls, *, color: bool = True, verbose: bool = False) -> "Consoles":
        """Return stdout and stderr; rich itself honours NO_COLOR."""
        no_color = None if color else True
        output = Console(no_color=no_color)
        environ = os.environ  # noqa: TID251 - the variables are the terminal's
        links = output.is_terminal and not output.is_dumb_terminal and can_show_links(environ)
        return cls(output, Console(no_color=no_color, stderr=True), verbose, links)

    @property
    def is_live(self) -> bool:
        """Whether the output is a terminal that can be repainted."""
        return self.output.is_terminal and not self.output.is_dumb_terminal

    def note(self, text: str, style: str = "") -> None:
        """Print untrusted text to the notes."""
        shown = Text(clean(text))
        if self.notes.is_terminal:
            shown = hang_words(shown, self.notes.width)
        shown.style = style
        self.notes.print(shown, soft_wrap=True)

    def print(self, text: str) -> None:
        """Print untrusted text to the output, with its addresses as links where the terminal shows them."""
        shown = Text(clean(text))
        if self.output.is_terminal:
            shown = hang_words(shown, self.output.width)
        self.output.print(link_addresses(shown) if self.links else shown, soft_wrap=True)

    def view(self, *, json: bool = False) -> RunDisplay:
        """Return a view for one run."""
        if json:
            return JsonDisplay(self.output.file, self.notes.file)
        if self.is_live:
            # A service shows no runs: it does without the import of what renders Markdown.
            from maniple.cli.render.terminal import TerminalDisplay

            return TerminalDisplay(self.output, verbose=self.verbose, links=self.links)
        return PlainDisplay(self.output.file, self.notes.file, verbose=self.verbose)

    def progress(self) -> "StartupBar | StartupLines":
        """Return what shows the progress of the start."""
        is_live = self.notes.is_terminal and not self.notes.is_dumb_terminal
        return StartupBar(self.notes) if is_live else StartupLines(self.notes.file)

    def announce_model(self, answering: "Answering", notices: Sequence[str]) -> None:
        """Print which model answers, and what is not available. No endpoint has been called yet."""
        for text in _model_lines(answering):
            self.note(text, "dim")
        for notice in notices:
            self.note(f"• {notice}", "dim")


def _model_lines(answering: "Answering") -> Iterator[str]:
    if answering.embedded:
        yield f"Using {answering.model}, a small model that runs inside this program. It makes mistakes."
    else:
        yield f"Using {answering.model} at {answering.url}."
    if answering.advice:
        yield answering.advice
