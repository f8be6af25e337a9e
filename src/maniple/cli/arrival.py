"""How a conversation begins: anew, where an earlier one stands, or where one was cut off."""

import time

from maniple.cli.conversations import Conversation
from maniple.cli.opening import Choices
from maniple.cli.recollection import question_of
from maniple.cli.screens import Screens
from maniple.cli.session import Session
from maniple.cli.tally import Tally
from maniple.cli.untrusted import clean
from maniple.cli.words import one_line, time_ago
from maniple.runs import ThreadBusy
from maniple.store import RunRecord

_TITLE = 60


async def arrive(session: Session, choices: Choices, screens: Screens) -> Tally | None:
    """Go where `choices` say; return what a run came to that was gone on with here.

    The last exchange of an earlier conversation is shown, unless a question comes with the command.

    Raises `UnknownConversation`, and `ManipleError` where another program works on the conversation.
    """
    if choices.thread:
        found = await session.conversations.find(choices.thread)
        return await enter(found, session, shows=choices.resumes)
    if not choices.resumes:
        return None
    left = await session.conversations.cut_off()
    if not left:
        if choices.demands:
            screens.note("No run was cut off.", "dim")
        return None
    if len(left) > 1:
        them, one = ("them", "one") if len(left) > 2 else ("it", "it")
        were = "more were" if len(left) > 2 else "more was"
        screens.note(
            f"{len(left) - 1} {were} cut off: /threads shows {them}, /resume goes on with {one}.", "dim"
        )
    return await enter(await session.conversations.find(left[0].thread_id), session)


async def mention(session: Session, screens: Screens) -> None:
    """Say in a line that a run was cut off, and how to go on with it."""
    left = await session.conversations.cut_off()
    if left:
        screens.note(f"{_was_cut_off(left[0])} To go on with it: maniple chat --continue", "dim")


async def enter(conversation: Conversation, session: Session, *, shows: bool = True) -> Tally | None:
    """Go over to a conversation: show its last exchange, or go on with its run that was cut off.

    Returns what such a run came to. Raises `ThreadBusy` where another program works on it.
    """
    run = conversation.newest
    if conversation.standing == "cut off" and run is not None:
        session.new_view().say(f"{_was_cut_off(run)} It goes on now.")
        return await session.go_on(conversation)
    if conversation.standing == "under way":
        raise ThreadBusy("Another program works on this conversation. Wait for its end.")
    recollection = await session.join(conversation)
    if recollection is not None and shows:
        told = recollection.tally
        waiting = [recollection.plan, told.question] if session.waiting is not None else []
        events = [event for event in waiting if event is not None]
        session.new_view().recall(recollection.asked, told.answer if told.has_answer() else "", events)
    return None


def _was_cut_off(run: RunRecord) -> str:
    asked = clean(one_line(question_of(run), _TITLE))
    return f'"{asked}" was cut off {time_ago(time.time() - run.created_at)}.'
