"""A folder of documents: what is found in it, how it follows changes, and what cannot be got out of it."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from maniple.errors import FetchError, SearchError
from maniple.search import FolderSearch
from maniple.search.folder_files import MAX_FILE_BYTES, list_folder, read_file_below
from maniple.search.passages import MAX_PASSAGES, PASSAGE_CHARACTERS, pair_unspaced, split_document
from maniple.search.providers import folder

pytestmark = pytest.mark.anyio

READ: list[str] = []


async def read_document(name: str, body: bytes) -> tuple[str, str, str]:
    """Read text; a PDF cannot be read here, and of a file that is called "cut" not all."""
    READ.append(name)
    if name.endswith(".pdf"):
        raise FetchError("not here")
    text = body.decode()
    return text.partition("\n")[0].lstrip("# "), text, "Not all was read." if "cut" in name else ""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    (place / "travel notes").mkdir(parents=True)
    (place / "bridges.md").write_text(
        "# Bridges\n\nStone arches stand for centuries.\n\nSteel spans further."
    )
    (place / "travel notes/2026.txt").write_text("Expenses\n\nThe train to Lyon was 80 euros.")
    (place / "桥.md").write_text("# 桥梁\n\n赵州桥是石拱桥，位于河北。\n\nสะพานข้ามแม่น้ำ", encoding="utf-8")
    READ.clear()
    return place


@pytest.fixture
async def search(documents: Path) -> AsyncIterator[FolderSearch]:
    async with aclosing(FolderSearch(documents, read_document)) as search:
        yield search


async def names(search: FolderSearch, query: str, limit: int = 5) -> list[str]:
    return [hit.url for hit in await search.search(query, limit=limit)]


async def test_a_document_is_found_by_its_words_and_shown_with_its_passage(search: FolderSearch) -> None:
    [found] = await search.search("How much was the train to Lyon?", limit=5)
    assert (found.title, found.url) == ("Expenses", "folder:travel%20notes/2026.txt")
    assert "80 euros" in found.content


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("short.md", "Boats\n\nA ferry crosses.\n", "Boats\n\nA ferry crosses."),
        (
            "long.md",
            "Boats\n\nA ferry crosses.\n\n" + "Nothing else. " * 100,
            "[Found at line 3, in 1,424 characters. Read on: crawl_tool(url, section).]",
        ),
        (
            "cut.md",
            "Boats\n\nA ferry crosses.",
            "[Found at line 3, in 23 characters. Not all was read. Read on: crawl_tool(url, section).]",
        ),
    ],
)
async def test_a_passage_states_that_there_is_more(
    search: FolderSearch, documents: Path, name: str, text: str, said: str
) -> None:
    (documents / name).write_text(text)
    [found] = await search.search("ferry", limit=5)
    assert found.content.startswith("Boats\n\nA ferry crosses.")
    assert found.content.endswith(said)
    assert len(found.content) <= PASSAGE_CHARACTERS + 200


@pytest.mark.parametrize("query", ["stone arch", "BRIDGE", "century stones"])
async def test_forms_of_a_word_are_found(search: FolderSearch, query: str) -> None:
    assert (await names(search, query))[0] == "folder:bridges.md"


@pytest.mark.parametrize(
    "query", ["赵州桥", "石拱桥在哪里", "河北 桥梁", "桥", "梁", "州", "石", "ข้าม", "แม่น้ำ"]
)
async def test_what_is_written_without_spaces_is_found(search: FolderSearch, query: str) -> None:
    assert await names(search, query) == ["folder:%E6%A1%A5.md"]


@pytest.mark.parametrize(
    "query", ["quantum chromodynamics", "what is the capital of Peru", '"*) OR ("', "!?"]
)
async def test_what_is_not_there_is_not_found(search: FolderSearch, query: str) -> None:
    assert await names(search, query) == []


@pytest.mark.parametrize(
    ("query", "is_weak"),
    [
        ("How long do stone arches stand?", False),
        ("What do arches of the Ottoman palaces in Istanbul look like?", True),
    ],
)
async def test_a_hit_that_lacks_most_of_the_question_is_weak(
    search: FolderSearch, query: str, is_weak: bool
) -> None:
    [hit, *_] = await search.search(query, limit=1)
    assert hit.url == "folder:bridges.md"
    assert hit.is_weak is is_weak


async def test_the_best_document_comes_first_within_the_limit(search: FolderSearch, documents: Path) -> None:
    for number in range(8):
        (documents / f"{number}.txt").write_text("A list\n\nstone, " + "wood, " * 50 * number)
    (documents / "stones.txt").write_text("Stone\n\nStone on stone on stone.")
    found = await names(search, "stone", limit=3)
    assert (found[0], len(found)) == ("folder:stones.txt", 3)


async def test_changes_are_noticed_and_nothing_is_read_twice(search: FolderSearch, documents: Path) -> None:
    await names(search, "stone")
    assert len(READ) == 3
    (documents / "bridges.md").write_text("# Tunnels\n\nThey go below.")
    (documents / "travel notes/2026.txt").unlink()
    (documents / "new.md").write_text("Ferries\n\nThey float.")
    assert await names(search, "stone arches") == []
    assert await names(search, "tunnels") == ["folder:bridges.md"]
    assert await names(search, "ferries") == ["folder:new.md"]
    assert await names(search, "train Lyon") == []
    assert sorted(READ[3:]) == ["bridges.md", "new.md"]


async def test_what_cannot_be_read_is_left_out_until_it_changes(
    search: FolderSearch, documents: Path
) -> None:
    (documents / "scan.pdf").write_bytes(b"%PDF")
    (documents / "secret.key").write_text("stone stone")
    (documents / ".hidden.md").write_text("stone stone")
    for _ in range(2):
        assert await names(search, "stone") == ["folder:bridges.md"]
    assert READ.count("scan.pdf") == 1
    assert {"secret.key", ".hidden.md"}.isdisjoint(READ)


async def test_a_large_folder_is_read_in_pieces(
    search: FolderSearch, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "INDEXING_SECONDS", 0.0)
    assert await names(search, "stone") == []
    monkeypatch.setattr(folder, "INDEXING_SECONDS", 5.0)
    assert await names(search, "stone") == ["folder:bridges.md"]


async def test_two_at_once_read_each_document_once(search: FolderSearch) -> None:
    found = await asyncio.gather(names(search, "stone"), names(search, "train Lyon"))
    assert found == [["folder:bridges.md"], ["folder:travel%20notes/2026.txt"]]
    assert len(READ) == 3


async def test_a_found_document_is_read_by_its_address(search: FolderSearch) -> None:
    for url in await names(search, "train Lyon"):
        name, body = await search.read(url)
        assert (name, body.decode().partition("\n")[0]) == ("travel notes/2026.txt", "Expenses")


@pytest.mark.parametrize(
    "url",
    [
        *("folder:../outside.md", "folder:/etc/passwd", "folder:travel%20notes/../../outside.md", "folder:"),
        *("folder:%2e%2e/outside.md", "folder:link.md", "folder:linked/outside.md", "folder:.hidden.md"),
        *("folder:pipe.md", "folder:none.md", "folder:a\0.md", "folder:travel notes", "folder:secret.key"),
    ],
)
async def test_nothing_else_can_be_read(search: FolderSearch, documents: Path, url: str) -> None:
    (documents.parent / "outside.md").write_text("outside")
    (documents / "link.md").symlink_to(documents.parent / "outside.md")
    (documents / "linked").symlink_to(documents.parent)
    (documents / ".hidden.md").write_text("hidden")
    (documents / "secret.key").write_text("secret")
    os.mkfifo(documents / "pipe.md")
    with pytest.raises(SearchError, match="search for its name"):
        await search.read(url)
    assert await names(search, "outside") == []


async def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    async with aclosing(FolderSearch(tmp_path / "lost", read_document)) as search:
        with pytest.raises(SearchError, match=r"lost .*search\.folder"):
            await search.search("x", limit=5)


def test_files_over_the_limit_are_not_offered_nor_read_further(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    listing = list_folder(tmp_path, frozenset((".txt",)))
    assert (listing.files, listing.too_large) == ({}, ["big.txt"])
    assert len(read_file_below(tmp_path, "big.txt")) == MAX_FILE_BYTES


def test_a_document_is_cut_at_paragraphs_and_nothing_of_it_is_lost() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 60 for number in range(40))
    pieces = [one.text for one in split_document(text)]
    assert all(len(piece) <= PASSAGE_CHARACTERS and piece.startswith("Paragraph") for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["x" * 5_000_000, "桥" * 5_000_000, "\n" * 5_000_000, " x" * 2_500_000])
def test_a_huge_text_without_any_place_to_cut_takes_linear_time(text: str) -> None:
    begun = time.process_time()
    pieces = [one.text for one in split_document(text)]
    assert sum(len(pair_unspaced(piece)) for piece in pieces) < 4 * len(text)
    assert len(pieces) <= MAX_PASSAGES
    assert time.process_time() - begun < 5


def test_what_is_written_without_spaces_becomes_pairs() -> None:
    assert pair_unspaced("GPT模型v2 桥, 石拱桥") == "GPT 模型 v2  桥 ,  石拱 拱桥 "
