"""Stored conversations as text: a list of them, and what was asked and answered in one."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from maniple.cli.chat.session import Conversation, question_of
from maniple.cli.text import clean, one_line, table_lines, time_ago
from maniple.events import UserAnswered, UserMessageAnswered, UserMessageReceived, load_run_view
from maniple.store import RunRecord, Store
from maniple.types import RunStatus

_TITLE_CHARACTERS = 60
_SHOWN_ID = 8


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A question with its answer. `messages` are what was sent to the run meanwhile, each with the reply."""

    run: RunRecord
    question: str
    messages: Sequence[tuple[str, str]]
    answer: str
    """Markdown; "" if the run has no answer."""

    @property
    def remark(self) -> str:
        """What is to be known of a run that did not complete; else ""."""
        status: RunStatus | str = self.run.status
        if status == "completed":
            return "" if self.answer else "no answer"
        return "waiting for you" if status == "interrupted" else status.replace("_", " ")


async def read_turns(store: Store, thread_id: str) -> AsyncIterator[ConversationTurn]:
    """Yield the turns of a thread, oldest first; their records are read at once, their answers one by one."""
    from maniple.report_files import read_answer

    runs, before = list[RunRecord](), None
    while page := await store.runs.list_by_thread(thread_id, before=before):
        runs += page
        before = page[-1].created_at
    for run in reversed(runs):
        view = await load_run_view(
            store.events, run.run_id, [UserAnswered, UserMessageReceived, UserMessageAnswered]
        )
        messages = [
            (one.message, one.answer.content or "" if one.answer is not None else "")
            for one in view.exchanges.values()
        ]
        yield ConversationTurn(run, _question(run), messages, (await read_answer(store, run) or "").strip())


def _question(run: RunRecord) -> str:
    try:
        return question_of(run)
    except (ValueError, IndexError):  # stored by another version
        return "(the question cannot be read)"


def state_text(one: Conversation) -> str:
    """Return the state of a conversation, for people."""
    if one.state == "finished" and one.newest is not None:
        return one.newest.status.replace("_", " ")
    return "waiting for you" if one.state == "waiting" else one.state


def conversation_lines(listed: Sequence[Conversation], current: str = "") -> list[str]:
    """Return a line for each conversation with its number, id, age, state and title; `current` is marked."""
    now = time.time()
    return table_lines(
        [
            (
                f"{'▸' if one.thread_id == current else ' '}{number:>3}  {clean(one.thread_id[:_SHOWN_ID])}",
                time_ago(now - one.thread.updated_at),
                state_text(one),
                clean(one_line(one.thread.title, _TITLE_CHARACTERS)),
            )
            for number, one in enumerate(listed, start=1)
        ]
    )
