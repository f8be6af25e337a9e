"""`/save`, in the form that the name of the file asks for."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import docx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from langchain_core.messages import HumanMessage
from PIL import Image
from typer.testing import CliRunner

from maniple.cli.app import app
from maniple.cli.chat.attachments import Attachments
from maniple.cli.chat.prompt import COMMANDS, run_slash_command
from maniple.cli.chat.session import ChatSession, Conversations
from maniple.cli.render.plain import PlainDisplay
from maniple.events import ChatMessage, Event, PlanChanged, SessionState
from maniple.media_types import REPORT_SUFFIXES
from maniple.report_files import ReportRenderer
from maniple.runs import RunRequest
from maniple.store import RunRecord, Store, Thread, open_store
from maniple.text import shorten_words
from maniple.workspace import Workspaces
from tests.cli.events import ending, small_talk
from tests.cli.runs import ScriptedEngine, ScriptedRun, records, team_of
from tests.cli.test_run_pages import session_over

pytestmark = pytest.mark.anyio


async def test_the_suffix_selects_the_format_of_a_saved_report(tmp_path: Path) -> None:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "A question", 1.0, 1.0))
        await store.runs.add(RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0))
        session = session_over(store, tmp_path / "pages")
        no_browser = ReportRenderer(None, "There is no Chromium.")
        session.open_team = team_of(ScriptedEngine(ScriptedRun(small_talk())), renderer=no_browser)
        await session.ask("Hello")
        for name in ("a.html", "a.docx", "a.txt"):
            assert (
                await run_slash_command(session, f"/save {tmp_path / name}") == f"Saved to {tmp_path / name}"
            )
        refusal = await run_slash_command(session, f"/save {tmp_path / 'a.pdf'}")
    assert "<title>A question</title>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    word = docx.Document(io.BytesIO((tmp_path / "a.docx").read_bytes()))
    assert word.paragraphs[0].text == "A question"
    assert (tmp_path / "a.txt").read_text() == session.report.strip("\n") + "\n"
    assert "There is no Chromium." in refusal
    assert not (tmp_path / "a.pdf").exists()


async def test_a_report_is_not_saved_under_an_ending_of_another_form(tmp_path: Path) -> None:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        session = session_over(store, tmp_path / "pages")
        await session.ask("Hello")
        for name in ("x.odt", "x.PDFX"):
            refusal = await run_slash_command(session, f"/save {tmp_path / name}")
            assert all(ending in refusal for ending in REPORT_SUFFIXES)
            assert not (tmp_path / name).exists()
        for name in ("x", "x.MD", "report v1.2", "Notes of Dr. Who"):
            await run_slash_command(session, f'/save "{tmp_path / name}"')
            assert (tmp_path / name).read_text() == session.report.strip("\n") + "\n"


async def test_the_pictures_of_a_report_in_markdown_are_saved_beside_it(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 3)).save(picture, "PNG")
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "A question", 1.0, 1.0))
        run = RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0)
        await store.runs.add(run)
        await store.artifacts.add(run, "sales 2024.png", "image/png", picture.getvalue())
        session = session_over(store, tmp_path / "pages")
        await session.ask("Hello")
        session.report = "# Sales\n\n![By month](figures/sales%202024.png)\n\n![Gone](gone.png)"
        saved = await run_slash_command(session, f"/save {tmp_path / 'a.md'}")
        again = await run_slash_command(session, f"/save {tmp_path / 'a.md'}")
        (tmp_path / "b_files").mkdir()
        (tmp_path / "b_files/sales-2024.png").write_bytes(b"mine")
        foreign = await run_slash_command(session, f"/save {tmp_path / 'b.md'}")
        (tmp_path / "c_files").write_bytes(b"mine")
        no_folder = await run_slash_command(session, f"/save {tmp_path / 'c.md'}")
    assert str(tmp_path / "b_files/sales-2024.png") in foreign and "/save!" in foreign
    assert (tmp_path / "b_files/sales-2024.png").read_bytes() == b"mine"
    assert str(tmp_path / "c_files") in no_folder and "/save!" not in no_folder
    assert not (tmp_path / "b.md").exists() and not (tmp_path / "c.md").exists()
    assert saved == f"Saved to {tmp_path / 'a.md'}, with 1 picture in {tmp_path / 'a_files'}"
    assert "exists" in again
    assert "![By month](a_files/sales-2024.png)" in (tmp_path / "a.md").read_text()
    assert (tmp_path / "a_files/sales-2024.png").read_bytes() == picture.getvalue()


LONG_QUESTION = "Which of the squares of whole numbers from one to forty are the sums of two smaller squares?"
REPORT = "The squares grow [1].\n\n![The squares](squares.png)"


class Terminal:
    """A store with a conversation, and sessions that open it."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.notes = io.StringIO()

    async def has_run(self, run_id: str, status: str, report: str = "", plan: str = "") -> RunRecord:
        """Store a run of the conversation that has ended."""
        request = RunRequest([HumanMessage(f"Question {run_id}")]).to_json()
        ended_at = 1_750_000_000.0 + int(run_id)
        run = RunRecord(run_id, "t", "", "chat", "p", status, request, ended_at - 60, ended_at=ended_at)  # type: ignore[arg-type]
        await self.store.runs.add(run)
        events: list[Event] = [PlanChanged(title=plan, steps=[])] if plan else []
        events += small_talk(report) if report else ending("cancelled")
        if report:
            events[-1] = SessionState(messages=[ChatMessage(role="assistant", content=report)])
        await self.store.events.append([(run_id, records(events))])
        return run

    async def opened(self) -> ChatSession:
        """Return a session of a new process that has opened the conversation."""

        async def recover(_: RunRecord) -> None:
            raise AssertionError("no run was cut off")

        session = ChatSession(
            team_of(ScriptedEngine(ScriptedRun(small_talk()))),
            Conversations(self.store, recover),
            lambda: PlainDisplay(io.StringIO(), self.notes),
            Attachments(Workspaces(self.folder / "workspaces")),
        )
        assert await run_slash_command(session, "/resume t") == ""
        return session

    async def save(self, session: ChatSession, name: str) -> Path:
        """Save the report and return the file."""
        path = self.folder / name
        assert (await run_slash_command(session, f"/save! {path}")).startswith("Saved to ")
        return path


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", shorten_words(LONG_QUESTION, 80), 1.0, 1.0))
        yield Terminal(store, tmp_path)


async def test_the_report_of_a_conversation_that_was_opened_again_has_title_date_picture_and_links(
    terminal: Terminal,
) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 3)).save(picture, "PNG")
    run = await terminal.has_run("1", "completed", REPORT, plan="Squares and their sums")
    await terminal.store.artifacts.add(run, "squares.png", "image/png", picture.getvalue())
    await terminal.store.evidence("1").add("https://numbers.test/", "Numbers", "page", "Squares grow.")
    session = await terminal.opened()
    word = docx.Document(str(await terminal.save(session, "a.docx")))
    assert word.paragraphs[0].text == word.core_properties.title == "Squares and their sums"
    assert word.core_properties.created is not None
    assert word.core_properties.created.year == 2025
    assert len(word.inline_shapes) == 1
    targets = [
        one.target_ref for one in word.part.rels.values() if one.reltype == RELATIONSHIP_TYPE.HYPERLINK
    ]
    assert "https://numbers.test/" in targets
    assert "![The squares](a_files/squares.png)" in (await terminal.save(session, "a.md")).read_text()


async def test_after_a_cancelled_run_the_report_of_the_run_before_is_shown_and_saved(
    terminal: Terminal,
) -> None:
    await terminal.has_run("1", "completed", "The first report.")
    await terminal.has_run("2", "completed", "The second report.")
    await terminal.has_run("3", "cancelled")
    session = await terminal.opened()
    assert (await terminal.save(session, "a.md")).read_text() == "The second report.\n"
    shown = terminal.notes.getvalue()
    assert "The second report." in shown and "The first report." not in shown
    assert shown.index("Question 2") < shown.index("The second report.") < shown.index("Question 3")


async def test_a_conversation_without_a_report_does_not_save_that_of_another_one(terminal: Terminal) -> None:
    await terminal.has_run("1", "completed", "The first report.")
    session = await terminal.opened()
    await terminal.store.threads.create(Thread("other", "", "Other", 2.0, 2.0))
    await run_slash_command(session, "/resume other")
    assert await run_slash_command(session, f"/save {terminal.folder / 'a.md'}") == "There is no report yet."
    assert not (terminal.folder / "a.md").exists()


async def test_without_a_plan_a_long_question_is_the_title_and_ends_with_a_whole_word(
    terminal: Terminal,
) -> None:
    await terminal.has_run("1", "completed", "Some of them are.")
    page = (await terminal.save(await terminal.opened(), "a.html")).read_text()
    expected = f"{LONG_QUESTION[:80].rpartition(' ')[0]}…"
    assert f"<title>{expected}</title>" in page


async def test_a_report_with_a_heading_keeps_it_as_its_title(terminal: Terminal) -> None:
    await terminal.has_run("1", "completed", "# Sums\n\nSome of them are.", plan="Squares and their sums")
    page = (await terminal.save(await terminal.opened(), "a.html")).read_text()
    assert "<title>Sums</title>" in page and "Squares and their sums" not in page


def test_help_names_every_form_of_a_report() -> None:
    help_text = CliRunner().invoke(app, ["chat", "--help"]).output.rpartition("--save ")[2]
    for suffix in REPORT_SUFFIXES:
        assert suffix.removeprefix(".") in COMMANDS["/save"].purpose
        assert suffix.removeprefix(".") in help_text.partition(" --")[0]
