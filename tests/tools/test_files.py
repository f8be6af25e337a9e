from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from maniple.errors import FileError
from maniple.sandbox import Workspaces
from maniple.tools.files import file_tools

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in file_tools(Workspaces(tmp_path))}


async def test_what_is_written_can_be_read_and_listed(tools: dict[str, BaseTool], tmp_path: Path) -> None:
    written = await tools["write_file"].ainvoke({"path": "notes/ä.md", "content": "# Größe\n"})
    assert written == f"Wrote 10 bytes to notes/ä.md; the user finds it in {tmp_path / 'local'}."
    assert await tools["read_file"].ainvoke({"path": "notes/ä.md"}) == "# Größe\n"
    assert await tools["list_files"].ainvoke({}) == "notes/ä.md (10 bytes)"


async def test_an_empty_workspace_and_an_empty_file_say_so(tools: dict[str, BaseTool]) -> None:
    assert await tools["list_files"].ainvoke({}) == "[the workspace is empty]"
    await tools["write_file"].ainvoke({"path": "empty", "content": ""})
    assert await tools["read_file"].ainvoke({"path": "empty"}) == "[empty is empty]"


async def test_a_long_file_is_cut_between_characters_with_a_notice(tools: dict[str, BaseTool]) -> None:
    await tools["write_file"].ainvoke({"path": "long", "content": "a" + "€" * 10_000})
    shown = await tools["read_file"].ainvoke({"path": "long"})
    assert shown == "a" + "€" * 6666 + "\n[cut: the first 20000 of 30001 bytes]"


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"caf\xe9", b"\xff" * 30_000])
async def test_a_binary_file_is_named_as_such(
    tools: dict[str, BaseTool], tmp_path: Path, content: bytes
) -> None:
    Workspaces(tmp_path).open("local").write("picture", content)
    said = await tools["read_file"].ainvoke({"path": "picture"})
    assert said == f"[picture is a binary file of {len(content)} bytes; work on it with Python instead]"


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


async def test_a_long_listing_says_that_it_is_cut(tools: dict[str, BaseTool], tmp_path: Path) -> None:
    directory = Workspaces(tmp_path).open("local").path
    for number in range(201):
        (directory / str(number)).touch()
    listed = (await tools["list_files"].ainvoke({})).splitlines()
    assert len(listed) == 201
    assert listed[-1] == "[only the first 200 files are listed]"
