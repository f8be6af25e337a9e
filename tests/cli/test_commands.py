import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maniple.cli.chat.attachments import Attachments
from maniple.cli.chat.prompt import COMMANDS, ExitRequested, run_slash_command
from maniple.cli.chat.session import ChatSession
from maniple.cli.render.plain import PlainDisplay
from maniple.workspace import Workspaces
from tests.cli.events import agent, ending, model, review, small_talk, started
from tests.cli.runs import NoConversations, ScriptedEngine, ScriptedRun, team_of

pytestmark = pytest.mark.anyio


@contextmanager
def limited_to(size_bytes: int) -> Iterator[None]:
    """A disk on which no file can be larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def session_with(*runs: ScriptedRun) -> tuple[ChatSession, ScriptedEngine]:
    scripted = ScriptedEngine(*runs)
    nothing = Attachments(Workspaces(Path("/proc/none")))
    view = PlainDisplay(io.StringIO(), io.StringIO())
    session = ChatSession(team_of(scripted), NoConversations(), lambda: view, nothing)  # type: ignore[arg-type]
    return session, scripted


async def test_help_names_every_command_and_key() -> None:
    text = await run_slash_command(session_with()[0], "/help")
    assert all(name in text for name in (*COMMANDS, "Alt-Enter", "Ctrl-C", "Ctrl-D"))


@pytest.mark.parametrize(("line", "guess"), [("/hepl", "/help"), ("/tema coder", "/team"), ("/sav", "/save")])
async def test_an_unknown_command_is_answered_with_the_nearest(line: str, guess: str) -> None:
    text = await run_slash_command(session_with()[0], line)
    assert f"Did you mean {guess}?" in text


async def test_a_word_like_no_command_is_answered_with_help() -> None:
    assert "/help lists the commands" in await run_slash_command(session_with()[0], "/etc/hosts")


async def test_quit_leaves() -> None:
    with pytest.raises(ExitRequested):
        await run_slash_command(session_with()[0], "/quit")


async def test_turns_share_a_thread_and_send_the_newest_message_only_until_new_begins_another() -> None:
    session, runs = session_with(*(ScriptedRun(small_talk()) for _ in range(3)))
    await session.ask("first")
    await session.ask("second")
    await run_slash_command(session, "/new")
    await session.ask("third")

    first, second, third = runs.requests
    assert [[message.text for message in request.messages] for request in runs.requests] == [
        ["first"],
        ["second"],
        ["third"],
    ]
    assert first.thread_id is not None
    assert first.thread_id == second.thread_id != third.thread_id


async def test_the_chosen_team_works_on_the_next_question() -> None:
    session, runs = session_with(ScriptedRun(small_talk()), ScriptedRun(small_talk()))
    shown = await run_slash_command(session, "/team coder")
    await session.ask("first")
    await run_slash_command(session, "/team all")
    await session.ask("second")

    assert [line.strip() for line in shown.splitlines()[:5]] == [
        "– researcher",
        "✔ coder",
        "– browser",
        "– file_manager",
        "✔ reporter",
    ]
    assert [request.options.team_members for request in runs.requests] == [("coder",), ()]


async def test_a_wrong_member_changes_nothing() -> None:
    session, _ = session_with()
    await run_slash_command(session, "/team coder")
    assert "Did you mean browser?" in await run_slash_command(session, "/team browsr")
    assert session.options.team_members == ("coder",)


async def test_save_writes_the_last_report_and_prints_its_path(tmp_path: Path) -> None:
    session, _ = session_with(ScriptedRun(small_talk("# Sum\n\nis \x1b[31m4")))
    assert "no report" in await run_slash_command(session, "/save report.md")
    await session.ask("1+3=?")

    assert "/save FILE" in await run_slash_command(session, "/save")
    target = tmp_path / "my report.md"
    assert await run_slash_command(session, f"/save {target}") == f"Saved to {target}"
    assert target.read_text() == "# Sum\n\nis 4\n"


@pytest.mark.parametrize("line", ["/save! {}", "/save {} !", "/save! '{}'"])
async def test_save_replaces_a_file_only_with_the_option(tmp_path: Path, line: str) -> None:
    session, _ = session_with(ScriptedRun(small_talk("new text")))
    await session.ask("hello")
    target = tmp_path / "report.md"
    target.write_text("old")

    assert (
        await run_slash_command(session, f"/save {target}")
        == f"{target} exists. To replace it, enter /save! {target}"
    )
    assert target.read_text() == "old"
    assert await run_slash_command(session, line.format(target)) == f"Saved to {target}"
    assert target.read_text() == "new text\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none/report.md", "No such file or directory"), ("x" * 300, "File name too long"), ("a\0b", "null")],
)
async def test_a_path_that_cannot_be_written_is_a_sentence(tmp_path: Path, name: str, reason: str) -> None:
    session, _ = session_with(ScriptedRun(small_talk()))
    await session.ask("hello")
    text = await run_slash_command(session, f"/save {tmp_path / name}")
    assert text.startswith(f"{tmp_path / name} cannot be written: ")
    assert reason in text


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


async def test_two_names_are_refused_and_a_quoted_name_with_spaces_is_one(tmp_path: Path) -> None:
    session, _ = session_with(ScriptedRun(small_talk()))
    await session.ask("hello")
    refusal = await run_slash_command(session, f"/save {tmp_path}/a.md b.html")
    assert "/save" in refusal and names_in(tmp_path) == []
    await run_slash_command(session, f'/save "{tmp_path}/a.md b.md"')
    assert names_in(tmp_path) == ["a.md b.md"]


async def test_a_folder_is_no_file_to_save_to(tmp_path: Path) -> None:
    session, _ = session_with(ScriptedRun(small_talk()))
    await session.ask("hello")
    words = await run_slash_command(session, f"/save! {tmp_path}")
    assert words.startswith(f"{tmp_path} ") and "Is a directory" in words


async def test_a_full_disk_leaves_no_half_report_and_the_report_can_be_saved_elsewhere(
    tmp_path: Path,
) -> None:
    session, _ = session_with(ScriptedRun(small_talk("Hello " * 1000)))
    await session.ask("hello")
    full = await run_slash_command(session, "/save! /dev/full")
    with limited_to(1000):
        too_large = await run_slash_command(session, f"/save {tmp_path}/report.md")

    assert full.startswith("/dev/full ") and "No space left" in full
    assert "File too large" in too_large
    assert not (tmp_path / "report.md").exists()
    assert await run_slash_command(session, f"/save {tmp_path}/report.md") == f"Saved to {tmp_path}/report.md"


async def test_a_plan_waits_for_an_answer_or_for_a_new_conversation() -> None:
    waiting = [started(), *agent("planner", *model("planner", "{}")), review(), *ending("interrupted")]
    session, engine = session_with(ScriptedRun(waiting), ScriptedRun(small_talk()), ScriptedRun(waiting))
    await session.ask("compute")
    assert session.pending is not None
    assert session.pending.question == review()
    await session.answer("accept")
    assert engine.answers == [("1", "accept", "1")]
    assert session.pending is None
    await session.ask("compute")
    await run_slash_command(session, "/new")
    assert session.pending is None
