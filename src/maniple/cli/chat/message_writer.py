"""What the user types while a run is shown: answers to its steps, and messages to its lead."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

from maniple.cli.chat.answers import EditRequest, UnclearAnswer, parse_answer
from maniple.cli.process import TypedLine, hide_typing, is_typing_possible, read_typing
from maniple.cli.render import RunDisplay
from maniple.cli.render.run_text import TO_TEAM
from maniple.cli.text import clean, one_line
from maniple.errors import ManipleError
from maniple.events import RunView, StepInterrupted
from maniple.runs import Engine


class MessageWriter:
    """Sends what the user types while a run is shown to the step that asks, else to the run's lead."""

    def __init__(
        self,
        engine: Engine,
        run_id: str,
        view: RunDisplay,
        inspect: Callable[[str], Awaitable[str] | None],
    ) -> None:
        self._engine = engine
        self._run_id = run_id
        self._view = view
        self._inspect = inspect
        self._line = TypedLine(self._take)
        self._refused: list[str] = []
        self._open: list[StepInterrupted] = []
        self._answered: list[StepInterrupted] = []
        self._question: StepInterrupted | None = None
        """The question that the present line answers; None if the line is for the lead."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def unsent(self) -> str:
        """What was typed and could not be sent, or was not finished."""
        return " ".join(filter(None, (*self._refused, self._line.text)))

    def reading(self) -> AbstractContextManager[None]:
        """Return a context in which keys are read; they are hidden where the view cannot show them."""
        can_show = is_typing_possible() and self._view.show_typed(lambda: self._line.text)
        return read_typing(self._line) if can_show else hide_typing()

    def follow(self, run: RunView) -> None:
        """Note which questions are open. A line that is begun stays for whom it was begun."""
        self._open = list(run.step_questions.values())
        if not self._line.text:
            self._question = self._next_question()

    def _next_question(self) -> StepInterrupted | None:
        # By identity: a step may ask the same again.
        return next((one for one in self._open if not any(one is done for done in self._answered)), None)

    async def wait(self) -> None:
        """Wait until everything is sent."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _take(self, line: str) -> None:
        if line.startswith(TO_TEAM):
            self._start(self._send(line.removeprefix(TO_TEAM).strip()))
        elif (output := self._inspect(line)) is not None:
            self._start(self._print(output))
        elif line.startswith("/"):
            self._refused.append(line)
            self._view.note("This command works when the run has ended; it stays in the line until then.")
        elif self._question is not None:
            self._start(self._answer(self._question, line))
        else:
            self._start(self._send(line))
        self._question = self._next_question()

    async def _print(self, output: Awaitable[str]) -> None:
        try:
            self._view.note(clean(await output))
        except ManipleError as error:
            self._view.note(str(error))

    def _start(self, sending: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(sending))

    async def _answer(self, question: StepInterrupted, line: str) -> None:
        try:
            answer = _parse_line(question, line)
            await self._engine.resume(self._run_id, answer, interrupt_id=question.interrupt_id)
        except UnclearAnswer as error:
            self._view.note(str(error))
        except ManipleError as error:
            self._refused.append(line)
            self._view.note(f"Not sent: {error}")
        else:
            self._view.note(f"› {one_line(clean(line))}")
            self._answered.append(question)
            if not self._line.text:
                self._question = self._next_question()

    async def _send(self, line: str) -> None:
        try:
            await self._engine.send_message(self._run_id, line)
        except ManipleError as error:
            self._refused.append(line)
            self._view.note(f"Not sent: {error}")


def _parse_line(question: StepInterrupted, line: str) -> Any:
    """Return the answer in a line; raises `UnclearAnswer`. No editor can be opened while a run is shown."""
    answer = parse_answer(question, line)
    if isinstance(answer, EditRequest):
        raise UnclearAnswer("Give the new arguments in the line: e {…}")
    return answer
