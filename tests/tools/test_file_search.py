"""`search_files`: found by name and by line, in bounded time and words."""

import time
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from maniple.errors import FileError
from maniple.tools import files
from maniple.workspace import Workspace, Workspaces
from tests.tools.built import build_file_search

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path).open("local")


@pytest.fixture
def search(tmp_path: Path) -> BaseTool:
    return build_file_search(Workspaces(tmp_path))


async def test_names_and_lines_are_found_with_their_places(search: BaseTool, place: Workspace) -> None:
    place.write("src/sums.py", b"def add(a, b):\n    return a + b\n")
    place.write("notes.txt", "Größe der sums\r\n".encode("cp1252"))
    place.write("城市.csv", "城市,和\n北京,17\n".encode("gbk"))
    assert await search.ainvoke({"pattern": "^北京"}) == "城市.csv:2: 北京,17"
    (place.path / "城市.csv").unlink()
    place.write("picture.png", b"\x89PNG\0sums")
    assert await search.ainvoke({"pattern": "sums|^def "}) == (
        "notes.txt:1: Größe der sums\nsrc/sums.py:1: def add(a, b):"
    )
    assert await search.ainvoke({"pattern": "(?i)GRÖSSE|größe"}) == "notes.txt:1: Größe der sums"
    assert await search.ainvoke({"pattern": "nowhere"}) == ("[nothing found in 3 files, 1 of them binary]")


async def test_names_take_no_room_of_lines_and_no_name_is_the_last_line(
    search: BaseTool, place: Workspace
) -> None:
    for number in range(150):
        place.write(f"sums/{number:03}.txt", b"sums\n")
    lines = (await search.ainvoke({"pattern": "sums"})).split("\n")
    assert lines[:100] == [f"sums/{number:03}.txt:1: sums" for number in range(100)]
    assert [line for line in lines[100:] if "100 of 150" in line] == lines[100:]
    lines = (await search.ainvoke({"pattern": "sums/00"})).split("\n")
    assert lines[:-1] == [f"sums/00{number}.txt" for number in range(10)]
    assert lines[-1].startswith("[")


async def test_path_and_glob_narrow_the_search(search: BaseTool, place: Workspace) -> None:
    for name in ("a.py", "src/a.py", "src/deep/a.py", "src/a.txt"):
        place.write(name, b"here\n")
    for arguments, found in (
        ({"path": "src"}, ["src/a.py:1: here", "src/a.txt:1: here", "src/deep/a.py:1: here"]),
        ({"glob": "*.txt"}, ["src/a.txt:1: here"]),
        ({"glob": "**/*.txt"}, ["src/a.txt:1: here"]),
        ({"glob": "src/deep/*"}, ["src/deep/a.py:1: here"]),
        ({"path": "src", "glob": "*.md"}, ["[nothing found in 0 files]"]),
    ):
        assert (await search.ainvoke({"pattern": "here", **arguments})).split("\n") == found
    assert await search.ainvoke({"pattern": "here", "path": "src/a.py"}) == "src/a.py:1: here"
    for path in ("nowhere", "a.py/b", "../.."):
        with pytest.raises(FileError):
            await search.ainvoke({"pattern": "here", "path": path})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "a*a*a*a*a*a*a*b", "(?:a?){900}a{900}"])
async def test_a_hostile_pattern_does_not_hang(search: BaseTool, place: Workspace, pattern: str) -> None:
    place.write("long", (b"a" * 10_000 + b"!\n") * 20)
    begun = time.process_time()
    await search.ainvoke({"pattern": pattern})
    assert time.process_time() - begun < 8


@pytest.mark.parametrize("pattern", ["[", "(?=look)", r"(a)\1", "a{1001}", "(a{1000}){1000}", "\udcff("])
async def test_a_pattern_that_is_none_is_refused_with_words(search: BaseTool, pattern: str) -> None:
    with pytest.raises(FileError, match=r"The pattern does not work here: .* RE2"):
        await search.ainvoke({"pattern": pattern})


async def test_what_is_found_is_cut_and_cannot_pose_as_a_line(search: BaseTool, place: Workspace) -> None:
    place.write("many", b"x\n" * 500)
    place.write("wide", b"y" * 900 + b"\x1b[31m\n")
    (place.path / "z\nforged").touch()
    lines = (await search.ainvoke({"pattern": "x"})).split("\n")
    assert (len(lines), lines[-1]) == (101, "[only the first 100 of 500 lines are shown; narrow the pattern]")
    assert await search.ainvoke({"pattern": "yy"}) == f"wide:1: {'y' * 200}"
    assert (await search.ainvoke({"pattern": "forged"})).split("\n")[0] == "z\\nforged"


async def test_the_end_of_a_large_file_and_of_a_long_line_is_searched(
    search: BaseTool, place: Workspace
) -> None:
    place.write("big.log", b"a line of the log%s\n" % (b"." * 80) * 30_000 + b"the needle\n")
    place.write("one.json", b'{"i": 1}, ' * 6_000 + '{"ä": "Öl"}'.encode())
    assert await search.ainvoke({"pattern": "needle", "glob": "*.log"}) == "big.log:30001: the needle"
    found = await search.ainvoke({"pattern": '"Öl"', "path": "one.json"})
    beginning, rest = found.split("[at character 60007]")
    assert beginning == "one.json:1: " and '{"i": 1}, {"ä": "Öl"}\n' in rest
    assert rest.endswith("\n[lines over 20000 characters were searched in parts of that length]")


async def test_a_large_file_is_searched_after_the_others(search: BaseTool, place: Workspace) -> None:
    place.write("a.log", b"needle\n" + (b"x" * 100 + b"\n") * 12_000)
    place.write("b.txt", b"needle\n")
    assert await search.ainvoke({"pattern": "needle"}) == "b.txt:1: needle\na.log:1: needle"


async def test_a_hit_across_two_parts_is_found_once(search: BaseTool, place: Workspace) -> None:
    place.write("wide", b"x" * 19_997 + b"needle" + b"y" * 50_000 + b"\nneedle\n")
    lines = (await search.ainvoke({"pattern": "needle"})).split("\n")
    assert [line.partition(" xx")[0] for line in lines[:-1]] == [
        "wide:1: [at character 19998]",
        "wide:2: needle",
    ]


async def test_a_glob_narrows_before_files_are_counted(search: BaseTool, place: Workspace) -> None:
    for number in range(2_100):
        (place.path / f"{number}.txt").touch()
    place.write("z/deep/main.py", b"def needle(): pass\n")
    for arguments in ({"glob": "*.py"}, {}):
        found = await search.ainvoke({"pattern": "needle", **arguments})
        assert found == "z/deep/main.py:1: def needle(): pass"


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("_NAMED_FILES", 2, "[not searched: more than 2 files; narrow it by path]"),
        (
            "SEARCH_SECONDS",
            -1.0,
            "[not searched: what comes after the first -1 seconds; narrow it by path or glob]",
        ),
    ],
)
async def test_unsearched_files_are_reported(
    search: BaseTool, place: Workspace, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, said: str
) -> None:
    monkeypatch.setattr(files, limit, value)
    for name in ("a", "b", "c"):
        place.write(name, b"here\n")
    assert (await search.ainvoke({"pattern": "nowhere"})).split("\n")[-1] == said


async def test_a_link_is_not_followed(search: BaseTool, place: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret words")
    (place.path / "file").symlink_to(tmp_path / "outside" / "secret")
    (place.path / "folder").symlink_to(tmp_path / "outside")
    (place.path / "hard").hardlink_to(tmp_path / "outside" / "secret")
    assert "words" not in await search.ainvoke({"pattern": "secret"})
    with pytest.raises(FileError):
        await search.ainvoke({"pattern": "secret", "path": "folder"})
