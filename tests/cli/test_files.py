"""Files that a person gives the team at the terminal."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.chat.attachments import Attachments
from maniple.errors import FileError, WorkspaceFull
from maniple.workspace import Workspaces
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


@pytest.mark.slow
async def test_a_given_file_is_read_by_the_team_and_not_listed_as_its_work(
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


async def test_the_files_of_a_run_are_stored_as_by_the_server(server: OpenAIServer, tmp_path: Path) -> None:
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
    [
        ("missing.csv", "does not exist"),
        ("hidden", "has no files to attach"),
        ("linked", "leads out"),
        ("pipe", "not a regular file"),
    ],
)
async def test_an_invalid_file_is_reported_before_any_model_call(
    server: OpenAIServer, tmp_path: Path, name: str, words: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/.env").touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/passwd").symlink_to("/etc/passwd")
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--file", name, "Sum it up", folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    assert words in " ".join(notes.replace("│", " ").split())
    assert "Traceback" not in notes and server.requests == []


async def test_a_too_large_file_is_reported_and_nothing_of_it_stays(
    server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(b"x" * 1_100_000)
    env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__DISK_MB="1")
    status, _, notes = await run("--file", "big", "Sum it up", folder=tmp_path, env=env)
    assert status == 2
    assert "sandbox.disk_mb" in notes
    assert server.requests == [] and workspaces_in(tmp_path) == []


async def test_two_files_of_one_name_are_refused_before_any_model_call(
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
        await terminal.enter("/file /dev/null", r"not a regular file")
        await terminal.enter("/file sales.csv", r"Attached a copy of sales\.csv \(7 bytes\)")
        await terminal.enter("/file sales.csv", r"\(7 bytes\)\. It replaced")
        await terminal.enter("/file 'my notes.txt'", r"Attached a copy of my notes\.txt \(1 byte\)")
        await terminal.enter("/files", r"Files in\s", r"my notes\.txt  1 byte", r"sales\.csv  7 bytes")
        await terminal.enter("Sum it up", r"The answer is 4\.\s", "✔ completed")
        await terminal.enter("/new", "New conversation")
        await terminal.enter("/file sales.csv", r"Attached a copy of sales\.csv")
        assert await terminal.leave() == 0
    names = [path.name for path in workspaces_in(tmp_path) if ".beside" not in path.parts]
    assert names == ["my notes.txt", "sales.csv"], "what nothing was asked about is not kept"


async def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    attachments = Attachments(Workspaces(tmp_path / "workspaces"))
    for path, words in ((Path("a\0b"), "cannot be read"), (Path("~nobody-here/x"), "cannot be read")):
        with pytest.raises(FileError, match=words):
            await attachments.add("thread", path)
    assert not (tmp_path / "workspaces").exists()


def fill(folder: Path) -> dict[str, bytes]:
    """Make a folder as people have them, and return what the team is to get of it."""
    files = {f"{kind}/{number}.txt": kind.encode() for kind in ("bill", "letter") for number in range(3)}
    for name in (*files, ".git/config", ".env", "node_modules/x/index.js", "bill/.DS_Store"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(files.get(name, b"secret"))
    (folder / "newest").symlink_to("bill/2.txt")
    (folder / "all").symlink_to("bill")
    os.mkfifo(folder / "pipe")
    return {**files, "newest": b"bill"}


async def test_a_folder_is_given_with_its_paths_and_without_what_is_hidden_or_generated(
    tmp_path: Path,
) -> None:
    expected = fill(tmp_path / "my papers")
    workspaces = Workspaces(tmp_path / "workspaces")
    attachments = Attachments(workspaces)
    content, stored = await attachments.add_folder("thread", tmp_path / "my papers")
    assert {one.upload.path: one.upload.size for one in stored} == {
        f"my papers/{name}": len(data) for name, data in expected.items()
    }
    assert workspaces.open("thread").read("my papers/newest", 9).content == b"bill"
    assert sorted(content.skipped) == [".env", ".git", "all", "bill/.DS_Store", "node_modules", "pipe"]
    assert [one.path for one in workspaces.uploads("thread").list_uploads()] == sorted(
        one.upload.path for one in stored
    )
    assert await attachments.new_files("thread") == []


async def test_a_folder_that_does_not_fit_is_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "papers")
    workspaces = Workspaces(tmp_path / "workspaces", max_bytes=20)
    with pytest.raises(WorkspaceFull):
        await Attachments(workspaces).add_folder("thread", tmp_path / "papers")
    monkeypatch.setattr("maniple.cli.chat.attachments.MAX_FOLDER_FILES", 5)
    with pytest.raises(FileError, match="more than 5 files"):
        await Attachments(workspaces).add_folder("thread", tmp_path / "papers")
    (tmp_path / "papers/bill/0.txt ").touch()
    with pytest.raises(FileError, match="the same name"):
        await Attachments(workspaces).add_folder("thread", tmp_path / "papers/bill")
    assert workspaces.files("thread", 9).found == ()


async def test_a_file_and_a_folder_of_one_clean_name_are_refused_and_links_to_themselves_left_out(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "papers")
    (tmp_path / "papers/circle").symlink_to("circle")
    workspaces = Workspaces(tmp_path / "workspaces")
    content, _ = await Attachments(workspaces).add_folder("first", tmp_path / "papers")
    assert "circle" in content.skipped
    (tmp_path / "papers/bill.").touch()
    with pytest.raises(FileError, match="the same name"):
        await Attachments(workspaces).add_folder("second", tmp_path / "papers")
    assert workspaces.open("second").tree("") == []


async def test_nothing_is_copied_of_a_folder_with_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "papers")
    (tmp_path / "papers/zzz").touch()
    whole = Path.open

    def refusing(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "zzz":  # its mode would not stop the superuser
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return whole(path, *args, **options)

    monkeypatch.setattr(Path, "open", refusing)
    workspaces = Workspaces(tmp_path / "workspaces")
    with pytest.raises(FileError, match="zzz cannot be read: Permission denied"):
        await Attachments(workspaces).add_folder("thread", tmp_path / "papers")
    assert workspaces.open("thread").tree("") == []


async def test_a_folder_named_like_the_team_s_records_does_not_replace_them(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/1.md").write_text("mine")
    workspaces = Workspaces(tmp_path / "workspaces")
    _, [stored] = await Attachments(workspaces).add_folder("thread", tmp_path / "reports")
    assert stored.upload.path == "reports-attached/1.md"


@pytest.mark.slow
async def test_a_folder_of_thirty_files_is_filed_and_the_filing_is_undone(
    server: OpenAIServer, tmp_path: Path
) -> None:
    names = [f"{kind}-{number}.txt" for kind in ("bill", "letter", "photo") for number in range(10)]
    (tmp_path / "post").mkdir()
    for name in names:
        (tmp_path / "post" / name).write_text(name)
    moves = [
        {"action": "move", "path": f"post/{name}", "destination": f"{name.partition('-')[0]}s/"}
        for name in names
    ]
    look = call("bash_tool", cmd="find . -type f | sort; find . -type d -empty")
    steps = [step("file_manager"), step("coder"), step("reporter")]

    def script(tool: str, **arguments: object) -> dict[str, list[dict]]:
        return {
            **SIMPLE,
            "planner": [reply(json.dumps(plan(*steps)))],
            "file_manager": [call(tool, **arguments), reply("Filed.")],
            "coder": [look, reply("Seen.")],
        }

    server.reset(script("file_operations", operations=moves))
    env = environment(tmp_path, server.base_url, MANIPLE_SANDBOX__BACKEND="bubblewrap")
    status, output, notes = await run("--json", "--file", "post", "File by kind", folder=tmp_path, env=env)
    assert status == 0, notes
    assert "post/ (30 files, " in notes
    events = [json.loads(line) for line in output.splitlines()]
    thread = events[0]["data"]["thread_id"]
    seen = [one["data"]["tool_result"] for one in events if one["event"] == "tool_call_result"]
    filed = sorted(f"./{name.partition('-')[0]}s/{name}" for name in names)
    assert seen[1].splitlines()[:31] == [*filed, "./post"]
    assert not [one for one in events if one["event"] == "artifact"], "what was moved is still the user's"
    assert "bills/  10 files" in notes

    server.reset(script("undo_file_operations"))
    status, output, notes = await run("--thread", thread, "Undo it", folder=tmp_path, env=env)
    assert status == 0, notes
    place = tmp_path / "data" / "workspaces" / thread
    assert sorted(one.name for one in (place / "post").iterdir()) == sorted(names)
    assert not (place / "bills").exists()
