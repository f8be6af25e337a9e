"""What a thread has is listed, and can be opened in its workspace."""

import io

import pytest

from maniple.evidence import MemoryEvidence
from maniple.redaction import Redactor
from maniple.tools.items import (
    MAX_ITEMS,
    ItemIndex,
    MirroredText,
    ThreadItems,
    find_tables,
    format_csv,
    report_path,
    result_path,
)
from maniple.workspace import Workspaces
from maniple.workspace.mirrors import is_mirror

pytestmark = pytest.mark.anyio
ROWS = [[f"land {n}", str(n), f"a|b {n}"] for n in range(420)]
TABLE = "\n".join(
    [
        "| Land | Figure | Note |",
        "|---|---:|:--|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in ROWS),
    ]
)


@pytest.fixture
def workspaces(tmp_path):
    return Workspaces(tmp_path)


def read(workspaces: Workspaces, path: str) -> str:
    return workspaces.open("local").read(path, 1_000_000).content.decode()


def described(index: ItemIndex) -> set[tuple[str, str, str]]:
    return {(one.kind, one.path, one.title) for one in index.items}


async def test_a_page_that_was_read_is_a_file_under_its_number_and_each_table_in_it_is_csv(workspaces):
    evidence = MemoryEvidence()
    await evidence.add("https://e.test/found", "Found", "result", "a snippet")
    await evidence.add("https://e.test/table", "A table", "page", f"Before.\n\n{TABLE}\n\nAfter.")
    index = await ThreadItems(workspaces).update(evidence)
    assert described(index) == {
        ("source", "sources/2.md", "A table"),
        ("table", "sources/2-table-1.csv", "Land,Figure,Note"),
    }
    page = read(workspaces, "sources/2.md")
    assert page.startswith("# A table\n\nSource [2]: https://e.test/table\n\nBefore.")
    assert page.endswith("After.")
    lines = read(workspaces, "sources/2-table-1.csv").splitlines()
    assert len(lines) == 421
    assert lines[420] == "land 419,419,a|b 419"


async def test_mirrors_cannot_be_written_and_follow_what_they_mirror(workspaces):
    items, evidence = ThreadItems(workspaces), MemoryEvidence()
    await evidence.add("https://e.test/", "Page", "page", "old text")
    await items.update(evidence, [MirroredText("results/1-coder.md", "first")])
    assert workspaces.open("local").is_read_only("sources/1.md")
    await evidence.add("https://e.test/", "Page", "page", "new text")
    await items.update(evidence, [MirroredText("results/1-coder.md", "second")])
    assert read(workspaces, "sources/1.md").endswith("new text")
    assert read(workspaces, "results/1-coder.md") == "second"


async def test_uploads_figures_files_results_and_reports_are_distinguished(workspaces):
    place = workspaces.open("local")
    workspaces.uploads("local").add([("data.csv", io.BytesIO(b"1,2"))])
    place.write("plot.png", b"not really a picture")
    place.write("tool.py", b"print(1)")
    texts = [MirroredText(result_path(1, 2, "coder"), "# Count\n\n4"), MirroredText(report_path(1), "# Tea")]
    index = await ThreadItems(workspaces).update(None, texts)
    assert described(index) == {
        ("upload", "data.csv", ""),
        ("figure", "plot.png", ""),
        ("file", "tool.py", ""),
        ("result", "results/2-coder.md", "Count"),
        ("report", "reports/1.md", "Tea"),
    }
    assert index.stored == {"results/2-coder.md", "reports/1.md"}


async def test_the_newest_are_listed_and_the_rest_are_counted(workspaces):
    place = workspaces.open("local")
    for number in range(MAX_ITEMS + 5):
        place.write(f"file-{number}.txt", b"x")
    index = await ThreadItems(workspaces).update(None)
    assert (len(index.items), index.older) == (MAX_ITEMS, 5)
    assert index.items[-1].path == f"file-{MAX_ITEMS + 4}.txt"


async def test_what_finds_no_room_is_left_out_and_the_rest_is_listed(tmp_path):
    workspaces = Workspaces(tmp_path, max_bytes=1_000)
    texts = [MirroredText("results/1-coder.md", "x" * 500), MirroredText("results/2-coder.md", "x" * 5_000)]
    index = await ThreadItems(workspaces).update(None, texts)
    assert index.stored == {"results/1-coder.md"}


async def test_no_secret_is_mirrored(workspaces):
    items = ThreadItems(workspaces, Redactor(["hunter2-hunter2"]))
    await items.update(None, [MirroredText("reports/1.md", "the key is hunter2-hunter2")])
    assert read(workspaces, "reports/1.md") == "the key is ***"


async def test_a_thread_without_anything_has_no_items_and_no_workspace(workspaces, tmp_path):
    assert await ThreadItems(workspaces).update(MemoryEvidence()) == ItemIndex()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "path", ["sources/3.md", "sources/3-table-1.csv", "results/2-coder.md", "results/request-2/1-own_role.md"]
)
def test_mirrors_are_recognised_by_their_paths(path):
    assert is_mirror(path)


@pytest.mark.parametrize(
    "path", ["sources.md", "results/out.csv", "reports/final.md", "sources/notes.md", "a/reports/1.md"]
)
def test_the_teams_own_files_are_not_taken_for_mirrors(path):
    assert not is_mirror(path)


def test_text_with_bars_and_short_tables_are_no_tables():
    text = "a | b\n\n| one | two |\n|---|---|\n| 1 | 2 |\n\n| no | rule |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |"
    assert find_tables(text) == []


def test_rows_have_the_width_of_the_heading():
    text = "| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |\n| 4 | 5 |\n"
    assert find_tables(text) == [[["a", "b"], ["1", ""], ["1", "2"], ["4", "5"]]]


def test_csv_quotes_what_needs_it():
    assert format_csv([["a,b", 'say "x"', "plain"]]) == '"a,b","say ""x""",plain\n'


async def test_a_figure_that_was_saved_and_shown_is_listed_once(workspaces):
    place = workspaces.open("local")
    for name in ("figures/figure-1.png", "sales.png", "figures/figure-2.png"):
        place.write(name, b"other" if name.endswith("2.png") else b"equal")
    index = await ThreadItems(workspaces).update(None)
    assert {one.path for one in index.items} == {"sales.png", "figures/figure-2.png"}
