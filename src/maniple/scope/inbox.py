"""The inbox of a run: everything that is sent to it, in order, until it has become of it what could."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from maniple.langgraph_internals import task_of
from maniple.scope.answers import UserAnswer
from maniple.scope.budget import Budget
from maniple.scope.context import configurable
from maniple.scope.inputs import (
    Cancel,
    Message,
    PlanChange,
    ReceivedInput,
    Reply,
    Resume,
    Retry,
    StepAnswer,
    UserMessage,
    find_changes,
)
from maniple.store.executors import run_to_completion

T = TypeVar("T")


class InputLog(Protocol):
    """Stores the inputs of one run; none takes effect before it is stored."""

    async def write(self, added: Sequence[ReceivedInput], settled: Sequence[ReceivedInput]) -> None:
        """Store new inputs, and the replies to known ones: all or none. Raises `StoreError`."""
        ...


class InputRefused(Exception):
    """The run does not take such an input now."""


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question that is shown to the user while the run works."""

    key: str
    interrupt_id: str
    """The id by which it is answered, the same if the run pauses with the question."""
    form: Any = None
    """The question as it is shown."""
    answered: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Ends when the answer is stored."""
    is_parked: bool = False
    """Whether its step has stopped to wait. It takes the answer when the graph is executed again."""


class Inbox:
    """What was sent to one run. The run takes it when it can; what it never takes is refused at its end.

    `received` are the inputs that are stored already. Without a `log` nothing can be sent to the run from
    outside: it works in a foreign graph.

    Inputs are written one after another, and a part of the inbox is sealed between two of them. So an input
    is either taken by the run or refused to its sender, also while the run ends.
    """

    def __init__(self, received: Iterable[ReceivedInput] = (), log: InputLog | None = None) -> None:
        self.changes: tuple[PlanChange, ...] = ()
        """All changes of the plan, oldest first. The plan knows which of them it has applied."""
        self.segment: Resume | Retry | None = None
        """With what the run was last continued after it had paused or ended."""
        self.is_cancelled = False
        """Whether the run is to end."""
        self.show_plan: Callable[[], Any] | None = None
        """Returns the plan (a `PlanProgress`) with the changes that wait, while steps run concurrently."""
        self._log = log
        self._received: dict[str, ReceivedInput] = {}
        self._answers: dict[str, StepAnswer] = {}
        self._taken: set[str] = set()
        """The keys of the questions whose answers were taken."""
        self._unsaved: dict[str, ReceivedInput] = {}
        """Inputs whose replies could not be stored; the next write contains them."""
        self._questions: list[OpenQuestion] = []
        self._answered: Counter[str] = Counter()
        self._begun_with: dict[int, set[str]] = {}
        self._given: dict[int, set[str]] = {}
        self._is_open = self._is_closed = False
        self.was_open = False
        """Whether the run has executed a plan in this process."""
        self._takes_answers = True
        self._writing = asyncio.Lock()
        self._changed: asyncio.Future[None] | None = None
        for one in received:
            self._keep(one)

    @property
    def received(self) -> Sequence[ReceivedInput]:
        """All inputs, oldest first."""
        return tuple(self._received.values())

    @property
    def budget(self) -> Budget | None:
        """The budget that the last retry gave the run; None if it was never retried."""
        given = (one.content.budget for one in self._received.values() if isinstance(one.content, Retry))
        return next(reversed([*given]), None)

    @property
    def answer_id(self) -> str | None:
        """The id of the newest answer with which a paused run continues; None if there is none."""
        given = [one.input_id for one in self._received.values() if isinstance(one.content, Resume)]
        return given[-1] if given else None

    @property
    def has_new_cancel(self) -> bool:
        """Whether the run was cancelled and nothing has become of that yet."""
        return any(isinstance(one.content, Cancel) and one.reply is None for one in self._received.values())

    @property
    def is_reachable(self) -> bool:
        """Whether anything can be sent to the run while it works."""
        return self._log is not None

    @property
    def is_open(self) -> bool:
        """Whether the run executes a plan: it takes changes of it, and its lead can be asked."""
        return self._is_open

    @property
    def messages(self) -> list[UserMessage]:
        """All messages, oldest first."""
        return [
            UserMessage(one.input_id, one.content.text, one.reply)
            for one in self._received.values()
            if isinstance(one.content, Message)
        ]

    @property
    def decided(self) -> list[UserMessage]:
        """The messages of this run that the lead has decided, oldest first."""
        return [one for one in self.messages if one.is_of_this_run]

    @property
    def undecided(self) -> list[UserMessage]:
        """The messages that wait for the lead, oldest first."""
        return [one for one in self.messages if one.reply is None]

    def changed(self) -> asyncio.Future[None]:
        """Return a future that ends with the next input, reply or question; shared: nobody may cancel it."""
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    async def put(self, one: ReceivedInput) -> None:
        """Store an input and take it in.

        Raises `InputRefused` if the run does not take it now, and `StoreError` if it could not be stored.
        """
        async with self._writing:
            if self._is_closed or (isinstance(one.content, PlanChange) and not self._is_open):
                raise InputRefused
            await run_to_completion(self._write([one]))

    async def receive(self, stored: Iterable[ReceivedInput]) -> None:
        """Take in inputs that another process has stored. Those that come too late have no effect."""
        async with self._writing:
            for one in stored:
                if one.input_id not in self._received and not self._is_closed:
                    self._keep(one)
            self._ring()

    async def decide(self, message_id: str, reply: Reply, changes: Iterable[PlanChange] = ()) -> None:
        """Store the lead's decision about a message with the changes of the plan that implement it."""
        async with self._writing:
            added = [ReceivedInput(change.change_id, change, "lead") for change in changes]
            decided = replace(self._received[message_id], reply=reply)
            await run_to_completion(self._write(added, [decided]))

    async def refuse(self, reasons: Mapping[str, str]) -> None:
        """Store that inputs without a reply could not be taken; `reasons` are by their ids."""
        async with self._writing:
            waiting = [one for one in self._received.values() if one.reply is None]
            refused = [
                replace(one, reply=Reply("refused", reasons[one.input_id]))
                for one in waiting
                if one.input_id in reasons
            ]
            if refused:
                await run_to_completion(self._write([], refused))

    def decide_unsaved(self, message_id: str, reply: Reply) -> None:
        """Decide about a message whose decision could not be stored; it is stored with the next input."""
        self._unsaved[message_id] = replace(self._received[message_id], reply=reply)
        self._keep(self._unsaved[message_id])
        self._ring()

    def open(self) -> None:
        """Take changes of the plan, and let the lead be asked, from now on."""
        if not self._is_open:
            self._is_open = self.was_open = True
            self._ring()

    async def seal(self, applied: Collection[str]) -> bool:
        """Take no more changes of the plan, unless one waits or a message does; return whether it is so.

        `applied` are the ids of the changes that the plan contains.
        """
        async with self._writing:
            self._is_open = bool(self.undecided) or self.has_new(applied)
            return not self._is_open

    async def close(self, settle: Callable[[ReceivedInput], Reply | None]) -> None:
        """Take nothing more, and store the replies that `settle` returns for inputs without one."""
        async with self._writing:
            self._is_closed, self._is_open = True, False
            waiting = [one for one in self._received.values() if one.reply is None]
            replies = [(one, settle(one)) for one in waiting]
            settled = [replace(one, reply=reply) for one, reply in replies if reply is not None]
            if settled or self._unsaved:
                await run_to_completion(self._write([], settled))

    def has_new(self, applied: Collection[str]) -> bool:
        """Return whether a change waits whose id is not among `applied`."""
        return not {change.change_id for change in self.changes} <= set(applied)

    async def next_message(self) -> UserMessage:
        """Wait for a message that the lead has to decide; return the oldest."""
        while not (self._is_open and (waiting := self.undecided)):
            await asyncio.wait({self.changed()})
        return waiting[0]

    async def settled(self) -> None:
        """Wait until no message waits for the lead."""
        while self.undecided:
            await asyncio.wait({self.changed()})

    @property
    def begun_steps(self) -> Collection[int]:
        """The ids of the steps that have begun in this process."""
        return self._begun_with.keys()

    def begin_step(self, step_id: int) -> list[UserMessage]:
        """Return all messages passed on so far; a starting step gets all of them."""
        passed_on = [one for one in self.messages if one.is_passed_on]
        self._begun_with[step_id] = {one.message_id for one in passed_on}
        return passed_on

    def new_messages(self, step_id: int) -> list[UserMessage]:
        """Return the messages for a step that `take_messages` has not returned yet.

        This includes the messages from its start, because after a restart an agent may have started without
        them.
        """
        begun_with, given = self._begun_with.get(step_id, set()), self._given.get(step_id, set())
        return [
            one
            for one in self.messages
            if one.is_passed_on
            and one.reply is not None
            and (step_id in one.reply.steps or one.message_id in begun_with)
            and one.message_id not in given
        ]

    def take_messages(self, step_id: int) -> list[UserMessage]:
        """Return the messages for a step, each once."""
        new = self.new_messages(step_id)
        self._given.setdefault(step_id, set()).update(one.message_id for one in new)
        return new

    @property
    def questions(self) -> Sequence[OpenQuestion]:
        """The questions that can be answered while the run works, oldest first."""
        return [one for one in self._questions if not one.answered.done()] if self._takes_answers else []

    @property
    def takes_answers(self) -> bool:
        """Whether the run has not come to its end or its pause."""
        return self._takes_answers

    def show(self, question: OpenQuestion) -> None:
        """Let a question be answered from now on. It replaces an earlier one with its key."""
        self.withdraw(question.key)
        self._questions.append(question)
        self._ring()

    def withdraw(self, key: str) -> None:
        """Let a question not be answered any more."""
        self._questions = [one for one in self._questions if one.key != key]

    async def answer(self, question: OpenQuestion, answer: Any) -> None:
        """Store the answer to a question and hand it over; raises as `put` does."""
        async with self._writing:
            if question not in self.questions:
                raise InputRefused
            content = StepAnswer(question.key, question.interrupt_id, answer, question.form)
            await run_to_completion(self._write([ReceivedInput(question.key, content)]))

    async def seal_questions(self) -> bool:
        """Take no more answers, unless a parked question was answered; return whether it is so.

        Then those that are parked take their answers when the graph is executed again.
        """
        async with self._writing:
            self._takes_answers = any(one.is_parked and one.answered.done() for one in self._questions)
            self._questions = []
            return not self._takes_answers

    def answer_to(self, key: str) -> UserAnswer | None:
        """Return the stored answer to a question, to the step that asked it; None if there is none."""
        if (given := self._answers.get(key)) is None:
            return None
        self._taken.add(key)
        return UserAnswer(given.answer, is_live=True)

    def is_taken(self, answer: StepAnswer) -> bool:
        """Return whether the step that asked has the answer."""
        return answer.question in self._taken

    def count_answer(self) -> None:
        """Count an answer that LangGraph has no record of, in the task that is executed."""
        self._answered[task_of(configurable())] += 1

    def make_id(self, interrupt_id: str) -> str:
        """Return the id of the next question of the task, whose interrupt has this id.

        LangGraph numbers the questions of a task by the answers that it has given to it. Answers that were
        given while the run worked are not among them: then it is `ID-1`, `ID-2` …, so that no answer reaches
        a question that its author was not shown.
        """
        answered = self._answered[task_of(configurable())]
        return f"{interrupt_id}-{answered}" if answered else interrupt_id

    async def _write(self, added: Sequence[ReceivedInput], settled: Sequence[ReceivedInput] = ()) -> None:
        if self._log is not None:
            await self._log.write(added, [*self._unsaved.values(), *settled])
        self._unsaved.clear()
        for one in (*added, *settled):
            self._keep(one)
        self._ring()

    def _keep(self, one: ReceivedInput) -> None:
        is_new = one.input_id not in self._received
        self._received[one.input_id] = one
        if not is_new:
            return
        self.changes = (*self.changes, *find_changes([one]))
        match one.content:
            case StepAnswer():
                self._answers[one.content.question] = one.content
                self._hand_over(one.content.question)
            case Resume() | Retry():
                self.segment, self.is_cancelled = one.content, False
            case Cancel():
                self.is_cancelled = True
            case Message() | PlanChange():
                pass

    def _hand_over(self, key: str) -> None:
        for question in self._questions:
            if question.key == key and not question.answered.done():
                question.answered.set_result(None)

    def _ring(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


async def run_unless_stopped(
    work: Coroutine[Any, Any, T], inbox: Inbox, is_stopped: Callable[[], bool]
) -> T | None:
    """Return the result of `work`; if a change of the plan stops it, cancel it and return None.

    `work` has ended when this function returns or raises.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done() and not is_stopped():
            await asyncio.wait({task, inbox.changed()}, return_when=asyncio.FIRST_COMPLETED)
        # A result that is complete is still discarded if the step was stopped in the meantime.
        return None if is_stopped() else await task
    finally:
        while not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log that it was never retrieved
