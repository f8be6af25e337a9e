"""Notes of tools for the model are told from the text of a report."""

import pytest

from maniple.sandbox.notes import format_state
from maniple.tools.reading_notes import is_note, may_be_note
from maniple.tools.text_file import LineRange, read_page, read_text_page
from maniple.workspace import Workspaces
from tests.tools.built import build_file_search, build_file_tools

NOTES = (
    format_state("It ended. Variables are gone."),
    "[this is the text of a b.pdf 'A title', as the PDF loader reads it]",
    "[a.html is a web page: Tea; this is its text; source=true shows its markup]",
    "[page 3 of 9 of a.pdf, as a picture]",
    "[only the first 100 files are listed]",
    "[12 files are not searched yet: search again]",
)
TEXTS = (
    "[1]",
    "[1] Tea, https://e.test",
    "[The history of tea](https://e.test)",
    "[Tea came in 1610.]",
    "[no files] were found",
    "[no files]\n\nTea came in 1610.",
    "[" + "x" * 500 + "; narrow the pattern]",
)


@pytest.mark.parametrize("note", NOTES)
def test_a_note_is_recognised_from_its_first_character(note):
    assert is_note(f"{note}\n")
    assert all(may_be_note(note[:end]) for end in range(1, len(note) + 1))


@pytest.mark.parametrize("text", TEXTS)
def test_other_text_in_brackets_belongs_to_the_report(text):
    assert not is_note(text)
    assert not may_be_note(text)


def test_the_reading_of_files_adds_nothing_but_known_notes(tmp_path):
    workspace = Workspaces(tmp_path).open("t")
    notes = [read_text_page("", "a.txt", LineRange())]
    notes += [read_text_page("x" * 200_000, "a.txt", LineRange()).splitlines()[-1]]
    (workspace.path / "b.bin").write_bytes(bytes(9_000))
    notes += [read_page(workspace, "b.bin", LineRange())]
    assert all(note.startswith("[") for note in notes), notes
    assert all(map(is_note, notes)), notes


@pytest.mark.anyio
async def test_lists_and_searches_add_nothing_but_known_notes(tmp_path):
    workspaces = Workspaces(tmp_path)
    tools = {tool.name: tool for tool in build_file_tools(workspaces)}
    search = build_file_search(workspaces)
    answers = [await tools["list_files"].ainvoke({}), await search.ainvoke({"pattern": "tea"})]
    assert all(is_note(str(answer)) for answer in answers), answers
