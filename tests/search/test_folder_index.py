"""The index of a folder outlives the process, follows changes, and is made again where it is damaged."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from maniple.errors import FetchError
from maniple.search import FolderSearch
from maniple.search.folder_files import IndexFiles, list_folder
from maniple.search.folder_index import FolderIndex, IndexStamp, NewDocument
from maniple.search.providers import folder as folder_module

pytestmark = pytest.mark.anyio

_KILLED_AFTER = 40
_FILES = 60


class Reader:
    """Reads text, and counts it. Of a PDF nothing can be read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def __call__(self, name: str, body: bytes) -> tuple[str, str, str]:
        self.names.append(name)
        if name.endswith(".pdf"):
            raise FetchError(f"{name} is a locked PDF; use another source.")
        return name, body.decode(), ""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    for number in range(_FILES):
        (place / f"{number}.txt").write_text(f"Station {number}\n\nThe signal{number} is at mile {number}.")
    return place


@pytest.fixture
def databases(tmp_path: Path) -> Path:
    return tmp_path / "index"


async def find(search: FolderSearch, query: str) -> list[str]:
    return [hit.url.removeprefix("folder:") for hit in await search.search(query, limit=3)]


async def wait_for_all(search: FolderSearch) -> None:
    for _ in range(100):
        await search.search("anything", limit=1)
        if not (await search.state()).pending:
            return
    raise AssertionError((await search.state()).describe_gaps())


def database_files(databases: Path) -> list[Path]:
    return list(databases.glob("*.db"))


def opened(documents: Path, databases: Path, reader: Reader, version: str = "1") -> FolderSearch:
    return FolderSearch(documents, reader, databases, reader=version)


async def test_after_a_restart_nothing_is_read_again(documents: Path, databases: Path) -> None:
    for expected in (_FILES, 0):
        reader = Reader()
        async with aclosing(opened(documents, databases, reader)) as search:
            await wait_for_all(search)
            assert (await find(search, "signal7"))[0] == "7.txt"
        assert len(reader.names) == expected


async def test_only_changed_files_are_read_and_deleted_ones_go(documents: Path, databases: Path) -> None:
    async with aclosing(opened(documents, databases, Reader())) as search:
        await wait_for_all(search)
    (documents / "3.txt").write_text("A lighthouse")
    (documents / "4.txt").unlink()
    (documents / "new.txt").write_text("A harbour")
    os.utime(documents / "5.txt", (1, 1))  # it has the same content
    reader = Reader()
    async with aclosing(opened(documents, databases, reader)) as search:
        await wait_for_all(search)
        assert sorted(reader.names) == ["3.txt", "new.txt"]
        assert [await find(search, query) for query in ("signal3", "signal4", "lighthouse", "harbour")] == [
            [],
            [],
            ["3.txt"],
            ["new.txt"],
        ]
        await wait_for_all(search)
    assert len(reader.names) == 2


async def test_another_version_of_the_reader_reads_all_again(documents: Path, databases: Path) -> None:
    for version, expected in (("1", _FILES), ("2", _FILES), ("2", 0)):
        reader = Reader()
        async with aclosing(opened(documents, databases, reader, version)) as search:
            await wait_for_all(search)
        assert len(reader.names) == expected


async def test_a_folder_is_not_mixed_with_another_one(
    documents: Path, databases: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "boat.txt").write_text("The signal7 of a boat")
    async with aclosing(opened(documents, databases, Reader())) as search:
        async with aclosing(opened(other, databases, Reader())) as second:
            await wait_for_all(search)
            await wait_for_all(second)
            assert await find(search, "boat") == []
            assert await find(second, "signal7 mile") == ["boat.txt"]
            assert len((await search.state()).pending) == 0


@pytest.mark.parametrize("damage", [b"no database at all", None])
async def test_a_damaged_index_is_made_again_and_that_is_said(
    documents: Path, databases: Path, damage: bytes | None
) -> None:
    async with aclosing(opened(documents, databases, Reader())) as search:
        await wait_for_all(search)
    [path] = database_files(databases)
    content = path.read_bytes()
    path.write_bytes(damage or content[:4096] + b"\xff" * (len(content) - 8192) + content[-4096:])
    reader = Reader()
    async with aclosing(opened(documents, databases, reader)) as search:
        await wait_for_all(search)
        assert await find(search, "signal7") == ["7.txt"]
        assert "was damaged" in (await search.state()).describe_gaps()
    assert len(reader.names) == _FILES
    assert [one != path for one in database_files(databases)] == [True]


async def test_a_process_notices_that_another_one_has_made_the_index_again(
    documents: Path, databases: Path
) -> None:
    async with aclosing(opened(documents, databases, Reader())) as search:
        await wait_for_all(search)
        files = IndexFiles(databases)
        files.replace(files.newest())
        files.replace(databases / "of an earlier number.db")
        async with aclosing(opened(documents, databases, Reader())) as second:
            await wait_for_all(second)
        (documents / "7.txt").write_text("Nothing")
        await wait_for_all(search)
        assert await find(search, "signal7") == []


async def test_two_at_work_read_each_document_once(documents: Path, databases: Path) -> None:
    reader = Reader()
    async with aclosing(opened(documents, databases, reader)) as first:
        async with aclosing(opened(documents, databases, reader)) as second:
            await asyncio.gather(wait_for_all(first), wait_for_all(second))
            assert await find(first, "signal7") == await find(second, "signal7") == ["7.txt"]
    assert len(reader.names) == _FILES


async def test_what_cannot_be_read_is_said_with_the_reason(documents: Path, databases: Path) -> None:
    (documents / "locked.pdf").write_bytes(b"%PDF")
    (documents / "empty.txt").write_text(" ")
    (documents / "photo.raw").write_bytes(b"x")
    async with aclosing(opened(documents, databases, Reader())) as search:
        await wait_for_all(search)
        state = await search.state()
    assert state.unreadable == {
        "empty.txt": "it has no text",
        "locked.pdf": "is a locked PDF",
    }
    assert (state.indexed, state.files) == (_FILES, _FILES + 2)
    assert "locked.pdf (is a locked" in state.describe_gaps()
    assert ".raw (1)" in state.left_out


async def test_a_file_that_could_not_be_read_is_tried_again_later(
    documents: Path, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (documents / "locked.pdf").write_bytes(b"%PDF")
    reader = Reader()
    async with aclosing(opened(documents, databases, reader)) as search:
        await wait_for_all(search)
        await wait_for_all(search)
        assert reader.names.count("locked.pdf") == 1
        monkeypatch.setattr(folder_module, "RETRY_SECONDS", -1.0)
        await search.search("anything", limit=1)
        assert reader.names.count("locked.pdf") > 1


async def test_a_question_is_answered_while_the_index_is_built(
    documents: Path, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "INDEXING_SECONDS", 0.2)
    go_on = asyncio.Event()

    async def read_slowly(name: str, body: bytes) -> tuple[str, str, str]:
        if name == "9.txt":  # the last one by name
            await go_on.wait()
        return name, body.decode(), ""

    async with aclosing(FolderSearch(documents, read_slowly, databases)) as search:
        for _ in range(100):
            if await find(search, "signal10"):
                break
        assert await find(search, "signal9") == []
        gaps = (await search.state()).describe_gaps()
        assert "not indexed yet" in gaps
        assert "of 60 documents" in gaps
        go_on.set()
        await wait_for_all(search)
        assert await find(search, "signal9") == ["9.txt"]
        assert (await search.state()).describe_gaps() == ""


async def test_an_index_that_cannot_be_stored_is_temporary(documents: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with aclosing(opened(documents, tmp_path / "file" / "index", Reader())) as search:
        await wait_for_all(search)
        assert await find(search, "signal7") == ["7.txt"]
        assert "cannot be stored" in (await search.state()).describe_gaps()


async def test_a_process_that_is_killed_while_it_builds_leaves_what_it_has_read(
    documents: Path, databases: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(f"""
            import asyncio, os
            from pathlib import Path
            from maniple.search import FolderSearch

            names = []

            async def read(name, body):
                names.append(name)
                if len(names) == {_KILLED_AFTER}:
                    os.kill(os.getpid(), {signal.SIGKILL.value})
                return name, body.decode(), ""

            async def main():
                documents, databases = Path({str(documents)!r}), Path({str(databases)!r})
                await FolderSearch(documents, read, databases, reader="1").search("signal7", limit=1)

            asyncio.run(main())
        """),
    )
    assert await process.wait() == -signal.SIGKILL
    reader = Reader()
    async with aclosing(opened(documents, databases, reader)) as search:
        await wait_for_all(search)
        assert await find(search, "signal7") == ["7.txt"]
        assert "damaged" not in (await search.state()).describe_gaps()
    assert 0 < len(reader.names) < _FILES


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FolderIndex]:
    index = FolderIndex(tmp_path / "index.db", tmp_path)
    try:
        yield index
    finally:
        index.close()


def document(name: str, text: str, title: str = "", key: str = "text") -> NewDocument:
    stamp = IndexStamp(1, len(text))
    return NewDocument(name=name, stamp=stamp, sha256=b"", reader="", title=title, text=text, format_key=key)


WORKBOOK = "## Sheet 1: Gates\n\nx\n\n## Sheet 2: More, A1:B2\n\nturnstile"
WORD = "# Gates\n\n" + "x " * 600 + "\n\n# Others\n\n" + "turnstile " * 90
TABLE = "\n".join(["| gate |", "| --- |", *["| plain gate |"] * 200, "| turnstile |"])


@pytest.mark.parametrize(
    ("key", "text", "place"),
    [
        ("text", "first\n\n" * 200 + "a turnstile\n", "line 401"),
        ("pdf", "## Page 1\n\nA gate\n\n## Page 2\n\nA turnstile", "page 2"),
        ("workbook", WORKBOOK, "sheet 2: More, A1:B2"),
        ("docx", WORD, "section Others"),
        ("csv", TABLE, "row 202"),
    ],
)
def test_a_passage_says_where_it_is(index: FolderIndex, key: str, text: str, place: str) -> None:
    index.put([document("a", text, key=key)])
    [found] = index.find("turnstile", 1)
    assert "turnstile" in found.text
    assert found.place.startswith(place)


def test_a_title_and_a_path_count_more_than_the_text(index: FolderIndex) -> None:
    index.put([document(f"{n}.txt", "something else of the same length, but tolls") for n in range(5)])
    index.put([document("named/tolls.txt", "something else of the same length, no more")])
    index.put([document("titled.txt", "something else of the same length, no more", "Tolls")])
    assert {one.name for one in index.find("tolls", 2)} == {"named/tolls.txt", "titled.txt"}


def test_words_are_alternatives_and_rare_ones_count_more(index: FolderIndex) -> None:
    index.put([document(f"{n}.txt", f"the annual report of station {n}") for n in range(30)])
    index.put([document("wanted.txt", "a gantry crane stands here")])
    query = "in which annual report of which station is the gantry described that we bought in the spring"
    [found, *_] = index.find(query, 5)
    assert found.name == "wanted.txt"
    assert 0 < found.coverage < 0.5


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Die Häuser in der Straße sind mit roten Ziegeln gedeckt, und das ist nicht neu.", "Haus Ziegel"),
        ("Los puentes de la ciudad se cerraron por las lluvias que no paraban.", "puente cerrar"),
        ("Les bateaux et les écluses du canal sont dans un état qui nous inquiète.", "bateau écluse"),
        ("Мосты через реку были построены в том же году, что и вокзал.", "мост построена"),
        ("The bridges of the city were closed for the winter.", "bridge closing"),
    ],
)
def test_words_are_found_in_other_forms_of_their_language(index: FolderIndex, text: str, query: str) -> None:
    index.put([document("a.txt", text), document("b.txt", "The ferry of the city sails in the winter.")])
    [found, *_] = index.find(query, 1)
    assert (found.name, found.coverage) == ("a.txt", 1.0)
    index.remove(["a.txt"])
    assert index.find(query, 1) == []


def test_a_query_of_function_words_is_no_error(index: FolderIndex) -> None:
    index.put([document("a.txt", "To be, or not to be")])
    found = index.find("to be or not to be", 1)
    assert [one.name for one in found] == ["a.txt"]


def test_a_removed_document_leaves_nothing(index: FolderIndex, tmp_path: Path) -> None:
    text = "naïve Straße 赵州桥 co-operation ﬁsh ２０２６ " * 500
    index.put([document("a.txt", text, "Straße")])
    index.remove(["a.txt"])
    query = "naive strasse 赵州 operation fish 2026 a.txt"
    assert index.find(query, 5) == []
    index.put([document("b.txt", "fish")])
    assert [one.name for one in index.find("fish", 5)] == ["b.txt"]
    index.check()


def test_links_and_other_formats_are_listed_as_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.bin").write_text("b")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    listing = list_folder(tmp_path, frozenset((".txt",)))
    assert list(listing.files) == ["a.txt"]
    assert sorted(listing.links) == ["link.txt", "loop"]
    assert ".bin (1)" in listing.describe_left_out()
