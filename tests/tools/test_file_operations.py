"""The file manager's tools that move, copy and delete, as a model uses them."""

import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from maniple.errors import FileError
from maniple.tools.files import uploaded_files
from maniple.tools.registry import load_tools
from maniple.workspace import Workspace, Workspaces

pytestmark = pytest.mark.anyio
Ask = Callable[..., Awaitable[str]]


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


@pytest.fixture
def place(workspaces: Workspaces) -> Workspace:
    return workspaces.open("local")


@pytest.fixture
def ask(workspaces: Workspaces) -> Ask:
    tools = load_tools().build({Workspaces: workspaces})

    async def ask(name: str, **arguments: object) -> str:
        return await tools[name].ainvoke(arguments)

    return ask


async def test_thirty_files_are_filed_by_one_call_and_undone_by_one(ask: Ask, place: Workspace) -> None:
    names = [f"{kind}-{number}.txt" for kind in ("bill", "letter", "photo") for number in range(10)]
    for name in names:
        place.write(name, name.encode())
    moves = [{"action": "move", "path": name, "destination": f"{name.partition('-')[0]}s/"} for name in names]
    told = await ask("file_operations", operations=moves)
    assert told.splitlines()[0] == "Moved bill-0.txt to bills/bill-0.txt."
    tree = (await ask("directory_tree")).splitlines()
    assert [line for line in tree if line.endswith("files)")] == [
        "bills/ (10 files)",
        "letters/ (10 files)",
        "photos/ (10 files)",
    ]
    assert tree[1] == "  bill-0.txt (10 bytes)"
    await ask("undo_file_operations")
    assert [name for name, _ in place.files(99)] == sorted(names)
    assert await ask("directory_tree") == await ask("list_files")


async def test_prompts_name_the_folders_into_which_many_files_of_the_user_were_moved(
    ask: Ask, workspaces: Workspaces, place: Workspace
) -> None:
    uploads = workspaces.uploads("local")
    uploads.add([(f"{number}.{kind}", io.BytesIO(b"xx")) for kind in ("csv", "md") for number in range(15)])
    uploads.add([("newest", io.BytesIO(b"x"))])
    named = uploaded_files(workspaces)
    before = await named()
    assert len(before) == 21
    assert before[-2:] == ["newest (1 bytes)", "and 11 more"]
    for kind in ("csv", "md"):
        moves = [
            {"action": "move", "path": f"{number}.{kind}", "destination": f"files/{kind}/"}
            for number in range(15)
        ]
        await ask("file_operations", operations=moves)
    after = await named()
    assert sorted(after) == [
        "files/csv/ (15 files, 30 bytes)",
        "files/md/ (15 files, 30 bytes)",
        "newest (1 bytes)",
    ]


async def test_one_wrong_operation_stops_all_and_each_is_named(ask: Ask, place: Workspace) -> None:
    place.write("a", b"a")
    place.write("b", b"b")
    wanted = [
        {"action": "move", "path": "a", "destination": "c"},
        {"action": "delete", "path": "gone"},
        {"action": "copy", "path": "c", "destination": "b"},
    ]
    with pytest.raises(FileError) as refused:
        await ask("file_operations", operations=wanted)
    assert "2. delete gone" in str(refused.value) and "3. copy c" in str(refused.value)
    assert [name for name, _ in place.files(9)] == ["a", "b"]


async def test_single_tools_do_the_same_and_edits_are_undone_with_them(ask: Ask, place: Workspace) -> None:
    await ask("write_file", path="a.md", content="one")
    await ask("write_file", path="a.md", content="two")
    await ask("create_directory", path="notes")
    await ask("create_directory", path="notes")
    await ask("move_file", source="a.md", destination="notes")
    await ask("copy_file", source="notes/a.md", destination="b.md")
    await ask("delete_file", path="notes")
    assert await ask("directory_tree") == "b.md (3 bytes)"
    await ask("undo_file_operations", steps=2)
    assert await ask("directory_tree", path="notes") == "a.md (3 bytes)"
    await ask("undo_file_operations", steps=3)
    assert place.read("a.md", 9).content == b"one"


async def test_an_undo_reports_how_many_earlier_changes_remain(ask: Ask, place: Workspace) -> None:
    for name in ("a", "b"):
        place.write(name, b"x")
        await ask("move_file", source=name, destination=f"{name}s/")
    told = await ask("undo_file_operations")
    assert "steps=1" in told
    assert "bash" in told, "what code changed is not undone"
    assert sorted(name for name, _ in place.files(9)) == ["as/a", "b"]
    assert "steps=" not in await ask("undo_file_operations", steps=1)
    assert sorted(name for name, _ in place.files(9)) == ["a", "b"]


async def test_the_team_s_own_records_stay(ask: Ask, place: Workspace) -> None:
    place.write_read_only("reports/1.md", b"report")
    place.write("a", b"a")
    with pytest.raises(FileError, match="read-only"):
        await ask("delete_file", path="reports")
    with pytest.raises(FileError, match="another name"):
        await ask("move_file", source="a", destination="reports/2.md")
    await ask("move_file", source="a", destination="reports/mine.md")


async def test_a_filed_upload_is_still_one_of_the_user(
    ask: Ask, workspaces: Workspaces, place: Workspace
) -> None:
    uploads = workspaces.uploads("local")
    uploads.add([("a.pdf", io.BytesIO(b"a"))])
    await ask("move_file", source="a.pdf", destination="2024/")
    assert [one.path for one in uploads.list_uploads()] == ["2024/a.pdf"]
    await ask("undo_file_operations")
    assert [one.path for one in uploads.list_uploads()] == ["a.pdf"]


async def test_a_name_cannot_pose_as_another_line_of_the_tree(ask: Ask, place: Workspace) -> None:
    (place.path / "a\nforged").mkdir()
    (place.path / "link").symlink_to("/etc/passwd")
    assert await ask("directory_tree") == "a\\nforged/ (0 files)\nlink [link]"
