"""A conversation with the team, and what its person has chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import HumanMessage

from maniple.cli.belongings import Belongings
from maniple.cli.conversations import Conversation, Conversations
from maniple.cli.recollection import Recollection, recall
from maniple.cli.tally import Tally
from maniple.cli.turn import follow
from maniple.cli.untrusted import clean
from maniple.cli.view import View
from maniple.cli.words import file_size, one_line
from maniple.events import Interrupted
from maniple.graph import RunOptions
from maniple.runs import Engine, NotWaiting, RunRequest, ThreadBusy
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.report_files import Press


def _new_thread() -> str:
    return str(uuid4())


@dataclass(slots=True)
class Waiting:
    """A run that waits for the person's word. `draft` is what was edited last and could not be used."""

    run_id: str
    question: Interrupted
    draft: str = ""


@dataclass(slots=True)
class Session:
    """One thread of turns.

    `report` is the newest finished answer as Markdown, `waiting` what the team waits for. Whatever is
    asked raises the `ManipleError` that keeps it from being begun.
    """

    engine: Engine
    conversations: Conversations
    available: Sequence[Worker]
    new_view: Callable[[], View]
    belongings: Belongings
    options: RunOptions = field(default_factory=RunOptions)
    most_steps: int = 12
    pages: Path = Path("pages")
    """Where the pages of runs are written."""
    press: "Press | None" = None
    """What makes files of reports."""
    thread_id: str = field(default_factory=_new_thread)
    report: str = ""
    waiting: Waiting | None = None
    run_id: str = ""
    """Of the run that was followed last."""

    async def ask(self, text: str) -> Tally:
        """Send one message and show the run, then the files that it left."""
        if await self.conversations.is_under_way(self.thread_id):
            raise ThreadBusy(
                "Another program works on this conversation. Ask again when it has ended, or in /new."
            )
        request = RunRequest([HumanMessage(text)], thread_id=self.thread_id, options=self.options)
        accepted = await self.engine.submit(request)
        return await self._follow(accepted.run.run_id, accepted.after)

    async def answer(self, answer: Any) -> Tally:
        """Give the answer that the team waits for, and show how the run goes on."""
        if self.waiting is None:
            raise NotWaiting("The team waits for no answer.")
        run_id, question = self.waiting.run_id, self.waiting.question
        try:
            accepted = await self.engine.resume(run_id, answer, interrupt_id=question.interrupt_id)
        except NotWaiting:
            self.waiting = None  # it was answered elsewhere
            raise
        return await self._follow(run_id, accepted.after)

    async def give(self, path: Path) -> str:
        """Put a file of the person's where the team works, and say so; raises `FileError`."""
        stored = await self.belongings.give(self.thread_id, path)
        name, size = one_line(stored.upload.path), file_size(stored.upload.size)
        replaced = ", in place of the file of that name that was there" if stored.replaced else ""
        return f"The team has {name} ({size}){replaced}."

    async def join(self, conversation: Conversation) -> Recollection | None:
        """Go over to a conversation; return its last exchange if that is over or waits for an answer."""
        self.thread_id, self.waiting = conversation.thread_id, None
        self.belongings.expect(self.thread_id)
        run = conversation.newest
        if run is None or conversation.standing not in ("over", "waits"):
            return None
        await self.belongings.news(self.thread_id)  # those were told when they came
        recollection = await recall(self.engine, run)
        self._take(run.run_id, recollection.tally)
        return recollection

    async def go_on(self, conversation: Conversation) -> Tally:
        """Go on with what was cut off on a conversation, and show it from its beginning.

        Raises `ThreadBusy` when another program was faster.
        """
        self.thread_id, self.waiting = conversation.thread_id, None
        run = await self.conversations.take_up(conversation)
        if run is None:
            raise ThreadBusy("Another program has gone on with this conversation.")
        return await self._follow(run.run_id)

    async def cancel(self, conversation: Conversation) -> bool:
        """Cancel what waits or was cut off on a conversation; says whether there was something.

        Raises `ThreadBusy` when another program was faster.
        """
        run = conversation.newest
        if run is None or conversation.standing not in ("cut off", "waits"):
            return False
        # Not taken up before: the run would begin to work until the engine hears of this.
        await self.engine.cancel(run.run_id)
        if conversation.thread_id == self.thread_id:
            self.waiting = None
        return True

    def start_over(self) -> None:
        """Begin a new thread; choices and the last report stay."""
        self.thread_id = _new_thread()
        self.waiting = None

    async def _follow(self, run_id: str, after: int = 0) -> Tally:
        view = self.new_view()
        self.waiting, self.run_id = None, run_id
        self.belongings.expect(self.thread_id)
        tally = await follow(self.engine, run_id, view, after=after)
        for line in await self.belongings.news(self.thread_id):
            view.say(clean(line))
        self._take(run_id, tally)
        return tally

    def _take(self, run_id: str, tally: Tally) -> None:
        if tally.status == "interrupted" and tally.question is not None:
            self.waiting = Waiting(run_id, tally.question)
        if tally.has_answer():
            self.report = tally.answer
