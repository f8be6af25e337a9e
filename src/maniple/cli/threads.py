"""`maniple threads`: the stored conversations of the terminal, without opening the team."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maniple.cli.options import SAVE_FORMATS, ConfigOption, NoColorOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.cli.chat.conversation_text import ConversationTurn
    from maniple.cli.chat.session import ChatSession, Conversation, Conversations
    from maniple.cli.render import Consoles
    from maniple.config import Settings
    from maniple.store import RunRecord, Store

threads = typer.Typer(name="threads", no_args_is_help=True, help="List, show and export conversations.")
_ThreadArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A conversation's id, or its beginning.", show_default=False)
]


@threads.command("list")
def list_threads(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="Only those with these words in the title.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most conversations.")] = 20,
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """List the conversations, newest first.

    \b
    Examples:
      maniple threads list
      maniple threads list solar power --limit 100
      maniple threads list --json | jq -r '.[] | select(.state == "waiting") | .thread_id'

    \b
    Exit status: 0 listed, even if there are none, 1 they cannot be read, 2 wrong usage or settings.
    """
    titled = " ".join(words or ())
    finish(_list(read_settings(config), limit, titled, _consoles(no_color), as_json=json))


@threads.command("show")
def show_thread(
    thread: _ThreadArgument,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    no_color: NoColorOption = False,
    config: ConfigOption = None,
) -> None:
    """Print a conversation: every question with its answer.

    \b
    Examples:
      maniple threads show 1a2b3c4d
      maniple threads show 1a2b3c4d > conversation.md      as Markdown
      maniple threads show --json 1a2b3c4d | jq -r '.runs[-1].answer'

    \b
    Exit status: 0 printed, 1 it cannot be read, 2 there is no such conversation, or wrong usage.
    """
    finish(_show(read_settings(config), thread, _consoles(no_color), as_json=json))


@threads.command("export")
def export_thread(
    thread: _ThreadArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, help=f"File ({SAVE_FORMATS}).")],
    question: Annotated[
        int | None,
        typer.Option("--question", min=1, help="The answer to this question, from 1.  [default: the newest]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    config: ConfigOption = None,
) -> None:
    """Save a report of a conversation with its figures and sources.

    \b
    Examples:
      maniple threads export 1a2b3c4d report.pdf
      maniple threads export 1a2b3c4d first.docx --question 1
      maniple threads export 1a2b3c4d all.zip               with the files of the run

    \b
    A file has one report, because each has sources of its own. To save the text of the whole
    conversation: maniple threads show ID > conversation.md. A PDF needs a browser; see maniple
    doctor.

    \b
    Exit status: 0 saved, 1 it cannot be read or written, 2 there is no such conversation, or wrong
    usage.
    """
    finish(_export(read_settings(config), thread, file, question, replace=force))


def _consoles(no_color: bool) -> "Consoles":
    from maniple.cli.render import Consoles

    return Consoles.of_this_process(color=not no_color)


@asynccontextmanager
async def _open_conversations(settings: "Settings") -> AsyncIterator[tuple["Store", "Conversations"]]:
    from maniple.cli.chat.session import Conversations
    from maniple.cli.store_admin import open_database

    async def continue_nothing(run: "RunRecord") -> "RunRecord | None":
        return None

    async with open_database(settings) as store:
        yield store, Conversations(store, continue_nothing)


async def _list(settings: "Settings", limit: int, titled: str, consoles: "Consoles", *, as_json: bool) -> int:
    from maniple.cli.chat.conversation_text import conversation_lines
    from maniple.cli.text import json_line

    async with _open_conversations(settings) as (_, conversations):
        listed = await conversations.list(limit, titled)
    if as_json:
        print(json_line([_thread_data(one) for one in listed]))
    elif listed:
        consoles.print("\n".join(conversation_lines(listed)))
    else:
        consoles.note("There are no such conversations." if titled else "There are no conversations yet.")
    return 0


def _thread_data(one: "Conversation") -> dict[str, Any]:
    thread = one.thread
    times = {"created_at": thread.created_at, "updated_at": thread.updated_at}
    status = one.newest.status if one.newest is not None else None
    return {
        "thread_id": thread.thread_id,
        "title": thread.title,
        **times,
        "state": one.state,
        "status": status,
    }


async def _show(settings: "Settings", name: str, consoles: "Consoles", *, as_json: bool) -> int:
    from maniple.cli.chat.conversation_text import read_turns
    from maniple.cli.text import clean, json_line, one_line

    async with _open_conversations(settings) as (store, conversations):
        found = await conversations.find(name)
        if as_json:
            runs = [_turn_data(turn) async for turn in read_turns(store, found.thread_id)]
            print(json_line({**_thread_data(found), "runs": runs}))
            return 0
        if not consoles.is_live:
            print(f"# {one_line(clean(found.thread.title))}\n")
        async for turn in read_turns(store, found.thread_id):
            _print_turn(turn, consoles)
    return 0


def _turn_data(turn: "ConversationTurn") -> dict[str, Any]:
    run = turn.run
    messages = [{"content": content, "reply": reply} for content, reply in turn.messages]
    about = {"run_id": run.run_id, "created_at": run.created_at, "status": run.status}
    return {**about, "question": turn.question, "messages": messages, "answer": turn.answer}


def _print_turn(turn: "ConversationTurn", consoles: "Consoles") -> None:
    """Print a turn, on a terminal as `chat` does, else as Markdown with the person's texts as quotations."""
    asked = [(turn.question, ""), *turn.messages]
    if consoles.is_live:
        _print_styled(turn, asked, consoles)
    else:
        _print_markdown(turn, asked)


def _print_markdown(turn: "ConversationTurn", asked: list[tuple[str, str]]) -> None:
    from maniple.cli.text import clean

    for text, reply in asked:
        print("\n".join(f"> {line}".rstrip() for line in clean(text).split("\n")), end="\n\n")
        if reply:
            print(clean(reply), end="\n\n")
    for text in filter(None, (clean(turn.answer), turn.remark and f"*({turn.remark})*")):
        print(text, end="\n\n")


def _print_styled(turn: "ConversationTurn", asked: list[tuple[str, str]], consoles: "Consoles") -> None:
    from rich.text import Text

    from maniple.cli.render.document_text import SafeMarkdown
    from maniple.cli.text import clean

    output = consoles.output
    for text, reply in asked:
        output.print(Text(f"› {clean(text)}", style="bold"))
        if reply:
            output.print(Text.assemble(("lead: ", "bold"), clean(reply)))
    output.print()
    if turn.answer:
        output.print(SafeMarkdown(clean(turn.answer), links=consoles.links))
        output.print()
    if turn.remark:
        output.print(Text(f"({turn.remark})\n", style="yellow"))


async def _export(settings: "Settings", name: str, file: Path, question: int | None, *, replace: bool) -> int:
    from maniple.cli.chat import ChatOptions, open_session
    from maniple.cli.chat.prompt import save_report
    from maniple.cli.chat.saved_files import choose_format
    from maniple.cli.process import WrongUsage
    from maniple.errors import FileError

    consoles = _consoles(no_color=False)
    try:
        choose_format(file.name)
    except FileError as error:
        raise WrongUsage(str(error)) from error
    async with open_session(settings, ChatOptions(thread=name), consoles) as session:
        found = await session.conversations.find(name)
        await session.open_thread(found.thread_id)
        await session.attachments.track(found.thread_id)
        if question is not None:
            await _choose_report(session, question)
        if not session.report:
            raise FileError(f"The conversation {name} has no report yet.")
        try:
            consoles.note(await save_report(session, str(file), replace=replace), "dim")
        except FileExistsError as error:
            raise FileError(f"{error.filename} exists. To replace it, add --force.") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise FileError(
                f"{file} cannot be written: {getattr(error, 'strerror', None) or error}"
            ) from error
    return 0


async def _choose_report(session: "ChatSession", number: int) -> None:
    """Make the answer to the question with this number the session's report; raises `FileError`."""
    from maniple.cli.chat.conversation_text import read_turns
    from maniple.errors import FileError
    from maniple.text import counted

    turns = [turn async for turn in read_turns(session.conversations.store, session.thread_id)]
    if number > len(turns):
        raise FileError(
            f"There is no question {number}: this conversation has {counted(len(turns), 'question')}."
        )
    turn = turns[number - 1]
    if not turn.answer:
        raise FileError(f"Question {number} has no answer ({turn.remark}).")
    session.report, session.report_run_id = turn.answer, turn.run.run_id
