"""`str_replace_editor`, as a model uses it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool

from maniple.errors import FileError
from maniple.tools.text_editor import insert_lines, replace_text
from maniple.tools.text_file import TextFile, decode_text
from maniple.workspace import EditHistory, Workspace, Workspaces
from tests.tools.built import build_editor, build_file_tools

pytestmark = pytest.mark.anyio
Ask = Callable[..., Awaitable[str]]
POEM = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path).open("local")


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    return asking(build_editor(Workspaces(tmp_path)))


def asking(tool: BaseTool) -> Ask:
    async def ask(command: str, path: str, **arguments: object) -> str:
        return await tool.ainvoke({"command": command, "path": path, **arguments})

    return ask


def content(place: Workspace, path: str = "poem") -> bytes:
    return place.read(path, 10**6).content


async def test_a_file_is_created_with_its_directories_and_never_over_another(
    ask: Ask, place: Workspace
) -> None:
    assert await ask("create", "src/a.py", file_text="x = 1\n") == "Created src/a.py (1 lines)."
    assert content(place, "src/a.py") == b"x = 1\n"
    with pytest.raises(FileError, match=r"'src/a\.py' exists"):
        await ask("create", "src/a.py", file_text="y")
    assert await ask("create", "__init__.py") == "Created __init__.py (0 lines)."
    with pytest.raises(FileError, match="is a directory"):
        await ask("create", "src", file_text="y")


async def test_a_file_is_viewed_with_line_numbers_whole_or_in_part(ask: Ask, place: Workspace) -> None:
    place.write("poem", POEM.encode())
    assert (await ask("view", "poem")).startswith("    1\tone\n    2\ttwo\n")
    assert await ask("view", "poem", view_range=[7, -1]) == "    7\tseven\n    8\teight"
    assert await ask("view", "poem", view_range=[8, 99]) == "    8\teight"
    for wrong in ([0, 1], [9, 9], [3, 2], [1], [1, 2, 3]):
        with pytest.raises(FileError, match="view_range"):
            await ask("view", "poem", view_range=wrong)
    place.write("empty", b"")
    assert await ask("view", "empty") == "[empty is empty]"


async def test_a_directory_is_viewed_as_a_list(ask: Ask, place: Workspace) -> None:
    place.write("src/a.py", b"12")
    assert await ask("view", "/workspace") == await ask("view", ".") == "src/a.py (2 bytes)"
    assert await ask("view", "src") == "src/a.py (2 bytes)"


async def test_long_files_and_long_lines_are_cut_and_marked(ask: Ask, place: Workspace) -> None:
    place.write("long", "\n".join(f"line {number}" for number in range(9_000)).encode())
    shown = await ask("view", "long")
    assert len(shown) < 20_200
    assert shown.endswith("to 9000 are not shown]")
    place.write("wide", b"x" * 3_000)
    assert await ask("view", "wide") == "    1\t" + "x" * 1_000 + "… [2000 more characters]"


async def test_the_one_place_is_replaced_and_shown_with_what_is_around_it(ask: Ask, place: Workspace) -> None:
    place.write("poem", POEM.encode())
    said = await ask("str_replace", "poem", old_str="four\nfive", new_str="4\n4.5\n5")
    lines = ["one", "two", "three", "4", "4.5", "5", "six", "seven", "eight"]
    assert said.split("\n") == ["Changed poem:", *(f"{n:>5}\t{line}" for n, line in enumerate(lines, 1))]
    assert content(place) == POEM.replace("four\nfive", "4\n4.5\n5").encode()
    await ask("str_replace", "poem", old_str="one\n")
    assert content(place).startswith(b"two\n"), "without new_str it is taken away"


async def test_several_places_are_named_by_their_lines_and_left(ask: Ask, place: Workspace) -> None:
    place.write("poem", b"a\nb\na\nb\na\n")
    with pytest.raises(FileError, match=r"poem 3 times.* 1, 3, 5"):
        await ask("str_replace", "poem", old_str="a", new_str="c")
    assert content(place) == b"a\nb\na\nb\na\n"


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("  return   x", "check the blanks.*\n.*2\t    return x"),
        ("return xx", "Nearest is:\n.*2\t    return x"),
        ("something else entirely", "Nothing there is like it: view the file first"),
    ],
)
async def test_a_text_that_is_not_found_is_answered_with_similar_lines(
    ask: Ask, place: Workspace, old: str, said: str
) -> None:
    place.write("poem", b"def f(x):\n    return x\n")
    with pytest.raises(FileError, match=f"(?s)does not stand in poem.*{said}"):
        await ask("str_replace", "poem", old_str=old, new_str="y")


@pytest.mark.parametrize(("old", "new", "said"), [("", "x", "old_str is empty"), ("one", "one", "the same")])
async def test_a_replacement_that_means_nothing_is_refused(
    ask: Ask, place: Workspace, old: str, new: str, said: str
) -> None:
    place.write("poem", POEM.encode())
    with pytest.raises(FileError, match=said):
        await ask("str_replace", "poem", old_str=old, new_str=new)


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        (b"a\nb\n", 0, b"N\na\nb\n"),
        (b"a\nb\n", 1, b"a\nN\nb\n"),
        (b"a\nb\n", 2, b"a\nb\nN\n"),
        (b"a\nb", 2, b"a\nb\nN"),
        (b"", 0, b"N\n"),
        (b"a\r\nb\r\n", 1, b"a\r\nN\r\nb\r\n"),
    ],
)
async def test_lines_are_inserted_after_the_one_that_is_named(
    ask: Ask, place: Workspace, before: bytes, line: int, after: bytes
) -> None:
    place.write("poem", before)
    said = await ask("insert", "poem", insert_line=line, new_str="N")
    assert content(place) == after
    assert f"{line + 1:>5}\tN" in said


async def test_a_line_that_is_not_there_or_not_named_is_refused(ask: Ask, place: Workspace) -> None:
    place.write("poem", POEM.encode())
    with pytest.raises(FileError, match=r"insert_line is 9.* 1 to 8"):
        await ask("insert", "poem", insert_line=9, new_str="x")
    with pytest.raises(FileError, match="insert needs insert_line"):
        await ask("insert", "poem", new_str="x")


async def test_undo_takes_back_step_after_step_and_removes_what_was_created(
    ask: Ask, place: Workspace
) -> None:
    await ask("create", "poem", file_text=POEM)
    await ask("str_replace", "poem", old_str="two", new_str="2")
    await ask("insert", "poem", insert_line=0, new_str="zero")
    assert (await ask("undo_edit", "poem")).startswith("Undone. poem is as it was:\n    1\tone")
    assert content(place) == POEM.replace("two", "2").encode()
    await ask("undo_edit", "/workspace/poem")
    assert content(place) == POEM.encode()
    assert "gone" in await ask("undo_edit", "poem")
    assert place.files(10) == []
    with pytest.raises(FileError, match="no edit of 'poem' to undo"):
        await ask("undo_edit", "poem")


async def test_undo_reverts_write_file_and_refuses_after_changes_by_code(
    ask: Ask, place: Workspace, tmp_path: Path
) -> None:
    write = next(tool for tool in build_file_tools(Workspaces(tmp_path)) if tool.name == "write_file")
    await ask("create", "poem", file_text="one")
    await write.ainvoke({"path": "poem", "content": "two"})
    await ask("undo_edit", "poem")
    assert content(place) == b"one"
    (place.path / "poem").write_text("by code")
    with pytest.raises(FileError, match="changed by other means"):
        await ask("undo_edit", "poem")
    assert content(place) == b"by code"


async def test_the_history_of_one_thread_is_none_of_anothers(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    place = workspaces.open("other")
    EditHistory.of(workspaces, "other").write(place, "poem", b"theirs")
    with pytest.raises(FileError, match="no edit"):
        await asking(build_editor(workspaces))("undo_edit", "poem")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_encoding_and_line_ends_of_a_file_stay(
    ask: Ask, place: Workspace, encoding: str, newline: str
) -> None:
    text = f"Größe: klein{newline}zwei{newline}drei"
    place.write("poem", text.encode(encoding))
    await ask("str_replace", "poem", old_str="klein\nzwei", new_str="groß\n2\n")
    await ask("insert", "poem", insert_line=1, new_str="é")
    changed = text.replace(f"klein{newline}zwei", f"groß{newline}é{newline}2{newline}")
    assert content(place) == changed.encode(encoding)


async def test_mixed_line_ends_stay_where_nothing_was_changed(ask: Ask, place: Workspace) -> None:
    place.write("poem", b"a\r\nb\nc\r\nd\ne\r\n")
    await ask("str_replace", "poem", old_str="b\nc\nd", new_str="x\ny")
    assert content(place) == b"a\r\nx\r\ny\ne\r\n"


async def test_a_character_that_the_files_encoding_lacks_is_refused_and_nothing_changed(
    ask: Ask, place: Workspace
) -> None:
    place.write("poem", "Größe: klein".encode("cp1252"))
    with pytest.raises(FileError, match=r"windows-1252.*'→'"):
        await ask("str_replace", "poem", old_str="klein", new_str="→")
    assert content(place) == "Größe: klein".encode("cp1252")
    with pytest.raises(FileError, match="no edit"):
        await ask("undo_edit", "poem")


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
async def test_a_binary_file_is_refused_with_words(ask: Ask, place: Workspace, command: str) -> None:
    place.write("poem", b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(FileError, match=r"binary file.*Python"):
        await ask(command, "poem", old_str="PNG", new_str="x", insert_line=0)


@pytest.mark.parametrize("command", ["view", "str_replace", "insert", "undo_edit", "create"])
@pytest.mark.parametrize("path", ["../poem", "/etc/passwd", "a/../../b", "a\0b", "link", "gone/poem"])
async def test_nothing_beyond_the_workspace_is_seen_or_changed(
    ask: Ask, place: Workspace, tmp_path: Path, command: str, path: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    (place.path / "link").symlink_to(tmp_path / "secret")
    (place.path / "gone").symlink_to(tmp_path)
    with pytest.raises(FileError) as refused:
        await ask(command, path, old_str="secret", new_str="x", insert_line=0)
    assert "root:" not in str(refused.value)
    assert (tmp_path / "secret").read_text() == "secret"
    assert not (tmp_path / "poem").exists()


async def test_concurrent_edits_are_all_applied(ask: Ask, place: Workspace) -> None:
    place.write("poem", "".join(f"<{number}>\n" for number in range(30)).encode())
    edits = (ask("str_replace", "poem", old_str=f"<{n}>", new_str=f"[{n}]") for n in range(30))
    await asyncio.gather(*edits)
    assert content(place) == "".join(f"[{number}]\n" for number in range(30)).encode()
    for _ in range(20):
        await ask("undo_edit", "poem")
    assert content(place).count(b"<") == 20
    with pytest.raises(FileError, match="no edit"):
        await ask("undo_edit", "poem")  # only so many steps are kept


TEXTS = st.lists(st.sampled_from(["a", "b", " ", "\n", "\r\n", "→"]), max_size=30).map("".join)


@given(text=TEXTS, old=TEXTS, new=TEXTS)
@example(text="\r\n", old="\r", new="a")
@example(text="\r\n", old="\r\r\n", new="a")
@example(text="\r\r\n", old="\r\r\n", new="a")
def test_a_replacement_leaves_the_rest_unchanged(text: str, old: str, new: str) -> None:
    file = TextFile(text)
    try:
        edited = replace_text("f", file, old, new)
    except FileError:
        return
    flat, wanted = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    expected = flat.replace(wanted, new.replace("\r\n", "\n"), 1)
    assert edited.file.text.replace("\r\n", "\n") == expected.replace("\r\n", "\n")
    assert decode_text(edited.file.content()) is not None


@given(text=TEXTS, new=TEXTS, line=st.integers(-2, 20))
def test_an_insertion_leaves_the_rest_unchanged(text: str, new: str, line: int) -> None:
    file = TextFile(text)
    try:
        edited = insert_lines("f", file, line, new)
    except FileError:
        return
    without = list(edited.file.text)
    for character in text:
        without.remove(character)  # nothing was lost
    assert edited.format_excerpt()
