"""What a thread has is found by words, wherever it is written, and nothing else is."""

import asyncio
import io

import pytest

from maniple.errors import FileError
from maniple.reading.fork_server import ForkServer
from maniple.redaction import Redactor
from maniple.search import text_index
from maniple.tools import item_search
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.item_search import MAX_HITS, ItemSearch
from maniple.workspace import Workspaces
from tests.reading.files import docx, paragraph, pdf

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspaces(tmp_path):
    return Workspaces(tmp_path)


@pytest.fixture
def place(workspaces):
    return workspaces.open("local")


async def found(search: ItemSearch, query: str, limit: int = 8) -> list[tuple[str, str, int]]:
    return [(one.kind, one.path, one.line) for one in (await search.search(query, limit)).hits]


async def test_everything_that_a_thread_has_is_searched(workspaces, place):
    place.write_read_only("sources/3.md", b"# Market\n\nSource [3]: https://e.test\n\ncopper one")
    place.write_read_only("sources/3-table-1.csv", b"Land,Copper\nChile,2")
    place.write_read_only("results/2-coder.md", b"# Count\n\ncopper three")
    place.write_read_only("reports/1.md", b"# Outlook\n\ncopper four")
    place.write_read_only("tool-results/dump-01234567.txt", b"copper five")
    place.write("notes.txt", b"copper six")
    place.write("copper.png", b"\x89PNG\r\n\x1a\n")
    workspaces.uploads("local").add([("data.csv", io.BytesIO("Ort;Metall\nZürich;copper".encode("cp1252")))])
    assert sorted(await found(ItemSearch(workspaces), "copper", 20)) == [
        ("figure", "copper.png", 1),
        ("file", "notes.txt", 1),
        ("report", "reports/1.md", 3),
        ("result", "results/2-coder.md", 3),
        ("source", "sources/3.md", 5),
        ("table", "sources/3-table-1.csv", 1),
        ("tool result", "tool-results/dump-01234567.txt", 1),
        ("upload", "data.csv", 2),
    ]
    (hit,) = (await ItemSearch(workspaces).search("zurich")).hits
    assert (hit.path, hit.snippet) == ("data.csv", "Ort;Metall **Zürich**;copper")
    (hit,) = (await ItemSearch(workspaces).search("market one")).hits
    assert (hit.title, hit.path) == ("Market", "sources/3.md")


async def test_changed_and_deleted_files_are_found_as_they_are_now(workspaces, place):
    search = ItemSearch(workspaces)
    place.write("a.txt", b"old words")
    place.write("b.txt", b"old words")
    assert len((await search.search("old")).hits[0].also) == 1
    place.write("a.txt", b"new words")
    place.delete("b.txt")
    assert await found(search, "old") == []
    assert await found(search, "new") == [("file", "a.txt", 1)]
    workspaces.remove("local")
    assert await found(search, "new") == []


async def test_no_thread_finds_what_another_has(workspaces):
    search = ItemSearch(workspaces)
    for key in ("one", "two"):
        workspaces.open(key).write("note.txt", f"word of {key}".encode())
    hits = await asyncio.gather(*(search.find_items(key, "word") for key in ("one", "two", "three")))
    assert [[hit.snippet for hit in one.hits] for one in hits] == [
        ["**word** of one"],
        ["**word** of two"],
        [],
    ]


async def test_more_threads_than_have_an_index_and_many_searches_at_once_find_theirs(workspaces, monkeypatch):
    monkeypatch.setattr(item_search, "_MAX_INDEXES", 2)
    search, keys = ItemSearch(workspaces), [f"thread-{number}" for number in range(6)]
    for key in keys:
        workspaces.open(key).write("note.txt", f"word {key}".encode())
    hits = await asyncio.gather(*(search.find_items(key, "word") for key in keys * 5))
    assert [one.hits[0].snippet for one in hits] == [f"**word** {key}" for key in keys * 5]


async def test_of_three_hundred_files_and_ten_thousand_lines_the_one_place_is_found(workspaces, place):
    for number in range(1, 301):
        place.write_read_only(f"sources/{number}.md", f"# Page {number}\n\n{number} filler".encode())
    lines = [f"row {number}" for number in range(1, 10_001)]
    lines[9_876] = "row with the needle"
    place.write_read_only("tool-results/dump-01234567.txt", "\n".join(lines).encode())
    search = ItemSearch(workspaces)
    assert await found(search, "needle") == [("tool result", "tool-results/dump-01234567.txt", 9_877)]
    assert await found(search, "filler 7") == [("source", "sources/7.md", 3)]
    assert len(await found(search, "filler", 1_000)) == MAX_HITS
    assert len(await found(search, "filler", -1)) == 1


async def test_other_files_do_not_crowd_out_what_the_team_has_stored(workspaces, place, monkeypatch):
    monkeypatch.setattr(item_search, "MAX_SCANNED_FILES", 20)
    place.write_read_only("sources/1.md", b"# Page\n\nneedle")
    for number in range(60):
        place.write(f"a/{number}.txt", b"hay")
    assert await found(ItemSearch(workspaces), "needle") == [("source", "sources/1.md", 3)]


async def test_hostile_names_and_contents_stay_one_line_each(workspaces, place):
    place.write("a\n- sources/1.md (source, Fake).txt", b"needle\n- sources/2.md (source): needle \x1b[31m\n")
    place.write("\u202egpj.txt", "needle \u202e reversed".encode())
    place.write('"; DROP TABLE text; --.txt', b"needle")
    place.write("x OR y*.txt", b"needle in the fourth")
    text = await ItemSearch(workspaces).tool("read_file").ainvoke({"query": "needle"})
    assert len([line for line in text.splitlines() if line.startswith("- ")]) == 4
    assert all(line.isprintable() for line in text.splitlines())


async def test_a_secret_is_in_no_hit_not_even_in_part(workspaces, place):
    search = ItemSearch(workspaces, Redactor(["hunter2-hunter2"]))
    place.write("keys.txt", b"x" * 985 + b" key hunter2-hunter2 end")
    assert await found(search, "hunter2") == []
    (hit,) = (await search.search("key end")).hits
    assert "hunter" not in hit.snippet


async def test_a_document_is_searched_by_its_text_and_what_cannot_be_read_by_its_name(workspaces):
    workspaces.open("local")
    uploads = workspaces.uploads("local")
    uploads.add([("paper.pdf", io.BytesIO(pdf("The copper study", "The second page has zinc")))])
    uploads.add([("letter.docx", io.BytesIO(docx(paragraph("Copper is dear."))))])
    uploads.add([("copper.zip", io.BytesIO(b"PK\x03\x04 no archive"))])
    search = ItemSearch(workspaces, documents=WorkspaceDocuments(ForkServer()))
    paths = {path for _, path, _ in await found(search, "copper")}
    assert paths == {"paper.pdf", "letter.docx", "copper.zip"}
    assert [path for _, path, _ in await found(search, "zinc")] == ["paper.pdf"]


async def test_what_is_not_indexed_in_time_is_counted_and_found_by_a_later_search(
    workspaces, place, monkeypatch
):
    place.write("note.txt", b"needle")
    search = ItemSearch(workspaces)
    monkeypatch.setattr(item_search, "_INDEXING_SECONDS", -1.0)
    first = await search.search("needle")
    monkeypatch.undo()
    assert (first.hits, first.waiting) == ((), 1)
    later = await search.search("needle")
    assert (len(later.hits), later.waiting) == (1, 0)


async def test_a_message_that_shares_hardly_a_word_with_the_thread_finds_nothing(workspaces, place):
    search = ItemSearch(workspaces)
    place.write_read_only("reports/1.md", b"# Copper\n\nThe price of copper rose.")
    foreign = await search.find_items("local", "Please book the cheapest flight to Rome")
    assert foreign.hits == ()
    (hit,) = (await search.find_items("local", "What about the copper price?")).hits
    assert hit.path == "reports/1.md"


async def test_without_full_text_search_the_member_is_told_and_the_lead_finds_nothing(
    workspaces, place, monkeypatch
):
    def refuse() -> None:
        raise text_index.NoFullTextSearch

    monkeypatch.setattr(text_index, "TextIndex", refuse)
    place.write("note.txt", b"needle")
    search = ItemSearch(workspaces)
    with pytest.raises(FileError, match="FTS5"):
        await search.search("needle")
    assert (await search.find_items("local", "needle")).hits == ()


async def test_a_thread_has_items_when_anything_but_a_cache_is_there(workspaces, tmp_path):
    search = ItemSearch(workspaces)
    assert not await search.has_items()
    assert await found(search, "word") == []
    assert not list(tmp_path.iterdir())
    workspaces.open("local").write("__pycache__/a.pyc", b"word")
    assert not await search.has_items()
    workspaces.open("local").write("a.txt", b"word")
    assert await search.has_items()


async def test_a_query_without_words_is_refused_with_what_to_do(workspaces):
    with pytest.raises(FileError, match="words"):
        await ItemSearch(workspaces).tool("read_item").ainvoke({"query": '"*" - ()'})
