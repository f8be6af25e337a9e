"""Files that a person gives the team at the terminal."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.cli.chat.attachments import Attachments
from maniple.errors import FileError
from maniple.sandbox import Workspaces
from tests.cli.processes import PROMPT, environment, on_terminal, run
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.team import plan, step

pytestmark = pytest.mark.anyio
READS = {
    **SIMPLE,
    "planner": [reply(json.dumps(plan(step("file_manager"), step("reporter"))))],
    "file_manager": [call("read_file", path="sales.csv"), reply("It is 42.")],
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(READS) as running:
        yield running


def workspaces_in(folder: Path) -> list[Path]:
    root = folder / "data" / "workspaces"
    return sorted(path for path in root.rglob("*") if path.is_file()) if root.exists() else []


async def test_a_given_file_is_named_to_the_team_read_by_it_and_not_told_as_its_work(
    server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "sales.csv").write_text("sum\n42\n")
    (tmp_path / "notes").write_text("n")
    env = environment(tmp_path, server.base_url)
    status, _, notes = await run(
        "--file", "sales.csv", "--file", "notes", "Sum it up", folder=tmp_path, env=env
    )
    assert status == 0, notes
    assert "sales.csv (7 bytes)" in notes and "notes (1 byte)" in notes
    assert "Files in" not in notes
    asked = json.dumps(server.requests[0]["messages"])
    assert "sales.csv (7 bytes)" in asked and "notes (1 bytes)" in asked
    [result] = [m["content"] for m in server.requests[-2]["messages"] if m["role"] == "tool"]
    assert "\nsum\n42\n\n" in result
    assert (tmp_path / "sales.csv").read_text() == "sum\n42\n"


async def test_what_a_run_leaves_is_kept_with_it_as_by_the_server(
    server: OpenAIServer, tmp_path: Path
) -> None:
    server.reset({**READS, "file_manager": [call("write_file", path="a.md", content="x"), reply("Done.")]})
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--json", "Write it down", folder=tmp_path, env=env)
    assert status == 0, notes
    events = [json.loads(line) for line in output.splitlines()]
    [artifact] = [event["data"] for event in events if event["event"] == "artifact"]
    assert (artifact["name"], artifact["size"]) == ("a.md", 1)


async def test_a_file_goes_into_the_conversation_that_is_gone_on_with(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    _, output, _ = await run("--json", "Hello", folder=tmp_path, env=env)
    thread = json.loads(output.splitlines()[0])["data"]["thread_id"]
    (tmp_path / "sales.csv").write_text("sum\n")
    status, _, notes = await run(
        "--thread", thread[:8], "--file", "sales.csv", "And now?", folder=tmp_path, env=env
    )
    assert status == 0, notes
    given = tmp_path / "data" / "workspaces" / thread / "sales.csv"
    assert given.read_text() == "sum\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [("missing.csv", "does not exist"), (".", "is a directory"), ("pipe", "not a regular file")],
)
async def test_what_cannot_be_given_is_said_before_any_model_is_asked(
    server: OpenAIServer, tmp_path: Path, name: str, words: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--file", name, "Sum it up", folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    assert words in " ".join(notes.replace("│", " ").split())
    assert "Traceback" not in notes and server.requests == []


async def test_a_file_that_is_too_large_is_said_and_nothing_stays_of_it(
    server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(b"x" * 1_100_000)
    env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__DISK_MB="1")
    status, _, notes = await run("--file", "big", "Sum it up", folder=tmp_path, env=env)
    assert status == 2
    assert "sandbox.disk_mb" in notes
    assert server.requests == [] and workspaces_in(tmp_path) == []


async def test_two_files_of_one_name_are_refused_before_any_model_is_asked(
    server: OpenAIServer, tmp_path: Path
) -> None:
    for folder in ("2023", "2024"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.csv").write_text(folder)
    env = environment(tmp_path, server.base_url)
    paths = ("--file", "2023/data.csv", "--file", "2024/data.csv")
    status, output, notes = await run(*paths, "Compare", folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    said = "2023/data.csv and 2024/data.csv would have the same name"
    assert said in " ".join(notes.replace("│", " ").split())
    assert server.requests == [] and workspaces_in(tmp_path) == []


async def test_files_are_given_and_listed_at_the_prompt(server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("sum\n42\n")
    (tmp_path / "my notes.txt").write_text("n")
    env = environment(tmp_path, server.base_url)
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT, 40)
        await terminal.enter("/files", "has no files yet")
        await terminal.enter("/file", r"Usage: /file PATH")
        await terminal.enter("/file nowhere.csv", r"nowhere\.csv does not exist")
        await terminal.enter("/file .", r"\. is a directory")
        await terminal.enter("/file sales.csv", r"Attached sales\.csv \(7 bytes\)")
        await terminal.enter("/file sales.csv", r"\(7 bytes\)\. It replaced")
        await terminal.enter("/file 'my notes.txt'", r"Attached my notes\.txt \(1 byte\)")
        await terminal.enter("/files", r"Files in ", r"my notes\.txt  1 byte", r"sales\.csv  7 bytes")
        await terminal.enter("Sum it up", r"The answer is 4\.\s", "✔ completed")
        await terminal.enter("/new", "New conversation")
        await terminal.enter("/file sales.csv", r"Attached sales\.csv")
        assert await terminal.leave() == 0
    names = [path.name for path in workspaces_in(tmp_path) if ".beside" not in path.parts]
    assert names == ["my notes.txt", "sales.csv"], "what nothing was asked about is not kept"


async def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    attachments = Attachments(Workspaces(tmp_path / "workspaces"))
    for path, words in ((Path("a\0b"), "cannot be read"), (Path("~nobody-here/x"), "cannot be read")):
        with pytest.raises(FileError, match=words):
            await attachments.add("thread", path)
    assert not (tmp_path / "workspaces").exists()
