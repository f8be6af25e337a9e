"""`maniple threads`: stored conversations, listed, shown and exported without the team."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.cli.chat.conversation_text import conversation_lines
from maniple.cli.chat.session import Conversation
from maniple.store import Thread
from tests.cli.processes import MANIPLE, environment, maniple, on_terminal
from tests.cli.test_threads import STARTS, asked
from tests.openai_server import OpenAIServer, reply, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    answers = [reply("# One\n\nI am *one*."), reply("I am two."), {"status": 400, "error": "the outage"}]
    with serving({"coordinator": answers}) as running:
        yield running


def test_titles_of_wide_characters_do_not_shift_the_columns() -> None:
    listed = [
        Conversation(Thread("a" * 36, "", title, 1.0, 1.0), None, "empty") for title in ("日本語", "plain")
    ]
    first, second = conversation_lines(listed, current="a" * 36)
    assert first.index("日本語") == second.index("plain") and first.startswith("▸")


async def test_conversations_are_listed_for_people_and_for_programs(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, notes = await maniple("threads", "list", folder=tmp_path, env=env)
    assert (status, output) == (0, "") and "no conversations" in notes
    first = await asked("Who are you?", tmp_path, env)
    second = await asked("What else?", tmp_path, env)
    _, output, _ = await maniple("threads", "list", folder=tmp_path, env=env)
    assert [line.split()[1] for line in output.splitlines()] == [second[:8], first[:8]]
    _, output, _ = await maniple("threads", "list", "--json", "who", folder=tmp_path, env=env)
    [one] = json.loads(output)
    assert (one["thread_id"], one["title"], one["state"]) == (first, "Who are you?", "finished")
    assert one["status"] == "completed" and one["created_at"] <= one["updated_at"]
    _, output, _ = await maniple("threads", "list", "--limit", "1", folder=tmp_path, env=env)
    assert len(output.splitlines()) == 1


async def test_a_conversation_is_shown_from_its_first_question_as_markdown_or_json(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?\nReally?", tmp_path, env)
    await asked("And now?", tmp_path, env, "--thread", thread_id)
    await asked("And then?", tmp_path, env, "--thread", thread_id)
    status, output, notes = await maniple("threads", "show", thread_id[:8], folder=tmp_path, env=env)
    assert status == 0 and STARTS not in notes and "\x1b" not in output
    lines = [line for line in output.splitlines() if line]
    assert lines[1:4] == ["> Who are you?", "> Really?", "# One"]
    assert lines[-4:] == ["> And now?", "I am two.", "> And then?", "*(failed)*"]
    _, output, _ = await maniple("threads", "show", "--json", thread_id, folder=tmp_path, env=env)
    shown = json.loads(output)
    assert [(one["status"], one["question"], one["answer"]) for one in shown["runs"][1:]] == [
        ("completed", "And now?", "I am two."),
        ("failed", "And then?", ""),
    ]
    status, _, notes = await maniple("threads", "show", "nonsense", folder=tmp_path, env=env)
    assert status == 2 and "threads list" in notes


async def test_on_a_terminal_answers_are_laid_out_and_no_color_is_obeyed(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?", tmp_path, env)
    shown = []
    for more in ({}, {"NO_COLOR": "1"}):
        arguments = ("threads", "show", thread_id)
        async with on_terminal(*arguments, folder=tmp_path, env=env | more, program=MANIPLE) as terminal:
            await terminal.see(r"› Who are you\?\s+One\s+I am one\.")
            assert await terminal.ended() == 0
            shown.append(terminal.raw)
    coloured = re.compile(r"\x1b\[[0-9;]*\b[39][0-7]\b[0-9;]*m")
    assert coloured.search(shown[1]) is None


async def test_a_report_is_exported_in_the_form_of_the_files_name(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?", tmp_path, env)
    await asked("And now?", tmp_path, env, "--thread", thread_id)

    async def export(*arguments: str) -> tuple[int | None, str]:
        status, _, notes = await maniple(
            "threads", "export", thread_id[:8], *arguments, folder=tmp_path, env=env
        )
        return status, notes

    status, notes = await export("newest.md")
    assert (status, (tmp_path / "newest.md").read_text()) == (0, "I am two.\n") and STARTS not in notes
    assert (await export("first.html", "--question", "1"))[0] == 0
    assert "<em>one</em>" in (tmp_path / "first.html").read_text()
    for name in ("a.docx", "a.zip"):
        assert (await export(name))[0] == 0
        assert zipfile.is_zipfile(tmp_path / name)
    status, notes = await export("newest.md", "--question", "1")
    assert status == 1 and "--force" in notes and (tmp_path / "newest.md").read_text() == "I am two.\n"
    assert (await export("newest.md", "--question", "1", "--force"))[0] == 0
    assert (tmp_path / "newest.md").read_text() == "# One\n\nI am *one*.\n"
    for arguments, status, message in (
        (("x.md", "--question", "3"), 1, "2 questions"),
        (("x.xyz",), 2, "ends in one of"),
        (("none/x.md",), 1, "cannot be written"),
    ):
        found = await export(*arguments)
        assert found[0] == status and message in " ".join(found[1].split())
