from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from maniple.errors import FileError, WorkspaceFull
from maniple.tools import text_file
from maniple.workspace import Workspaces
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in build_file_tools(Workspaces(tmp_path))}


async def test_what_is_written_can_be_read_and_listed(tools: dict[str, BaseTool], tmp_path: Path) -> None:
    written = await tools["write_file"].ainvoke({"path": "notes/ä.md", "content": "# Größe\n"})
    assert written == "Wrote 10 bytes to notes/ä.md."
    assert await tools["read_file"].ainvoke({"path": "notes/ä.md"}) == "# Größe\n"
    assert await tools["list_files"].ainvoke({}) == "notes/ä.md (10 bytes)"


async def test_empty_workspaces_and_files_are_reported(tools: dict[str, BaseTool]) -> None:
    assert await tools["list_files"].ainvoke({}) == "[the workspace is empty]"
    await tools["write_file"].ainvoke({"path": "empty", "content": ""})
    assert await tools["read_file"].ainvoke({"path": "empty"}) == "[empty is empty]"


async def test_a_long_file_is_cut_between_characters_with_a_notice(tools: dict[str, BaseTool]) -> None:
    await tools["write_file"].ainvoke({"path": "long", "content": "a" + "€" * 10_000})
    shown = await tools["read_file"].ainvoke({"path": "long"})
    assert shown == "a" + "€" * 6666 + "\n[cut here; read on with start_line=1, start_character=6668]"
    rest = await tools["read_file"].ainvoke({"path": "long", "start_line": 1, "start_character": 6668})
    assert rest == "€" * 3334


async def test_a_line_that_is_longer_than_any_page_is_read_to_its_end(tools: dict[str, BaseTool]) -> None:
    content = "first\n" + "".join(f"{number}," for number in range(20_000)) + "\nlast"
    await tools["write_file"].ainvoke({"path": "one.json", "content": content})
    read, arguments = "", {"path": "one.json"}
    for _ in range(20):
        shown, _, cut = (await tools["read_file"].ainvoke(arguments)).partition("\n[cut here; read on with ")
        read += shown
        if not cut:
            break
        assert len(shown) > 10_000 or shown == "first\n"
        places = (place.split("=") for place in cut.rstrip("]").split(", "))
        arguments = {"path": "one.json"} | {name: int(value) for name, value in places}
    assert read.replace("\n", "") == content.replace("\n", "")


async def test_lines_beyond_ten_megabytes_are_counted_and_read(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    big = Workspaces(tmp_path).open("local").path / "big.log"
    big.write_bytes(b"a line of the log with padding that is long enough\n" * 250_000 + b"the end\n")
    assert await tools["read_file"].ainvoke({"path": "big.log", "start_line": 250_001}) == "the end"
    with pytest.raises(FileError, match=r"250001 .* 250002 "):
        await tools["read_file"].ainvoke({"path": "big.log", "start_line": 250_002})


async def test_a_read_beyond_its_time_limit_is_reported(
    tools: dict[str, BaseTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "READ_SECONDS", -1.0)
    await tools["write_file"].ainvoke({"path": "a", "content": "x"})
    with pytest.raises(FileError, match=r"line 1 only.*Python"):
        await tools["read_file"].ainvoke({"path": "a"})


@pytest.mark.parametrize("content", [b"\xe9\xff\xfe\xf0a", b"\xff" * 30_000])
async def test_a_binary_file_is_named_as_such(
    tools: dict[str, BaseTool], tmp_path: Path, content: bytes
) -> None:
    Workspaces(tmp_path).open("local").write("picture", content)
    said = await tools["read_file"].ainvoke({"path": "picture"})
    assert said.startswith("[picture is a binary file") and f"{len(content)} bytes" in said


async def test_lines_of_a_file_are_read_on_where_it_was_cut(tools: dict[str, BaseTool]) -> None:
    lines = [f"line {number}" for number in range(1, 5_001)]
    await tools["write_file"].ainvoke({"path": "long", "content": "\n".join(lines)})
    shown = await tools["read_file"].ainvoke({"path": "long"})
    first = int(shown.rpartition("start_line=")[2].rstrip("]"))
    assert shown.split("\n")[first - 2] == lines[first - 2]
    assert lines[first - 1] not in shown.split("\n")
    rest = await tools["read_file"].ainvoke({"path": "long", "start_line": first, "end_line": first + 1})
    assert rest == f"line {first}\nline {first + 1}"
    assert await tools["read_file"].ainvoke({"path": "long", "start_line": 5_000}) == "line 5000"
    wide = await tools["read_file"].ainvoke({"path": "long", "start_line": 2})
    assert wide.endswith(f" start_line={first + 1}]") and len(wide) < 20_100
    with pytest.raises(FileError, match=r"5000 .* 5001"):
        await tools["read_file"].ainvoke({"path": "long", "start_line": 5_001})


async def test_what_windows_wrote_is_read_and_its_encoding_named(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    place = Workspaces(tmp_path).open("local")
    place.write("old.csv", "Straße;Größe\r\n".encode("cp1252"))
    place.write("wide.txt", "Größe €".encode("utf-16"))
    assert await tools["read_file"].ainvoke({"path": "old.csv"}) == (
        "Straße;Größe\r\n\n[the file's encoding is windows-1252]"
    )
    assert (await tools["read_file"].ainvoke({"path": "wide.txt"})).startswith("Größe €\n[the file's enc")


async def test_a_directory_is_listed_by_its_path(tools: dict[str, BaseTool]) -> None:
    await tools["write_file"].ainvoke({"path": "a/b/c.txt", "content": "x"})
    await tools["write_file"].ainvoke({"path": "d.txt", "content": "x"})
    for path in ("a", "/workspace/a", "a/b/"):
        assert await tools["list_files"].ainvoke({"path": path}) == "a/b/c.txt (1 bytes)"
    for path in ("d.txt", "nowhere", "../.."):
        with pytest.raises(FileError):
            await tools["list_files"].ainvoke({"path": path})


async def test_writing_beyond_the_quota_fails_and_changes_nothing(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, max_bytes=1_000)
    write, _, listed = build_file_tools(workspaces)
    await write.ainvoke({"path": "a", "content": "x" * 900})
    with pytest.raises(WorkspaceFull, match=r"\b900\b.*\b1000\b.*\b200\b"):
        await write.ainvoke({"path": "b", "content": "x" * 200})
    await write.ainvoke({"path": "a", "content": "y" * 1_000})
    assert await listed.ainvoke({}) == "a (1000 bytes)"


async def test_what_a_full_workspace_advises_can_be_done_without_code(tmp_path: Path) -> None:
    write, _, listed = build_file_tools(Workspaces(tmp_path, max_bytes=1_000))
    await write.ainvoke({"path": "a", "content": "x" * 900})
    with pytest.raises(WorkspaceFull, match="empty text"):
        await write.ainvoke({"path": "b", "content": "x" * 200})
    await write.ainvoke({"path": "a", "content": ""})
    await write.ainvoke({"path": "b", "content": "x" * 200})
    assert await listed.ainvoke({}) == "a (0 bytes)\nb (200 bytes)"


@pytest.mark.parametrize("path", ["../other/secret", "/etc/passwd", "a/../../b", "a\0b"])
async def test_a_path_out_of_the_workspace_is_refused(tools: dict[str, BaseTool], path: str) -> None:
    with pytest.raises(FileError):
        await tools["read_file"].ainvoke({"path": path})
    with pytest.raises(FileError):
        await tools["write_file"].ainvoke({"path": path, "content": "x"})


async def test_a_name_cannot_pose_as_another_line_of_the_listing(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    directory = Workspaces(tmp_path).open("local").path
    (directory / "a\nforged (1 bytes)").touch()
    (directory / "bad\udcff").touch()
    listed = await tools["list_files"].ainvoke({})
    assert listed == "a\\nforged (1 bytes) (0 bytes)\nbad\\udcff (0 bytes)"


async def test_a_long_listing_is_cut_and_marked(tools: dict[str, BaseTool], tmp_path: Path) -> None:
    directory = Workspaces(tmp_path).open("local").path
    for number in range(201):
        (directory / str(number)).touch()
    listed = (await tools["list_files"].ainvoke({})).splitlines()
    assert len(listed) == 201
    assert "first 200" in listed[-1]
