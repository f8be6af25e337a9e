"""A conversation with the team, and what its person has chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from langchain_core.messages import HumanMessage

from maniple.cli.tally import Tally
from maniple.cli.turn import follow
from maniple.cli.view import View
from maniple.events import Interrupted
from maniple.graph import RunOptions
from maniple.runs import RunRequest, Runs
from maniple.types import Worker


def _new_thread() -> str:
    return str(uuid4())


@dataclass(slots=True)
class Session:
    """One thread of turns.

    `report` is the newest finished answer as Markdown, `question` what the team waits for.
    """

    runs: Runs
    available: Sequence[Worker]
    new_view: Callable[[], View]
    options: RunOptions = field(default_factory=RunOptions)
    thread_id: str = field(default_factory=_new_thread)
    report: str = ""
    question: Interrupted | None = None

    async def ask(self, text: str) -> Tally:
        """Send one message and show the run; what the team waits for is answered by it."""
        request = RunRequest([HumanMessage(text)], thread_id=self.thread_id, options=self.options)
        tally = await follow(self.runs.start(request), self.new_view())
        self.question = tally.question if tally.status == "interrupted" else None
        if tally.has_answer():
            self.report = tally.answer
        return tally

    def start_over(self) -> None:
        """Begin a new thread; choices and the last report stay."""
        self.thread_id = _new_thread()
        self.question = None
