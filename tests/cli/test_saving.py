"""`/save`, in the form that the name of the file asks for."""

import io
from pathlib import Path

import docx
import pytest

from maniple.cli.chat.prompt import run_slash_command
from maniple.report_files import ReportRenderer
from maniple.store import RunRecord, Thread, open_store
from tests.cli.test_run_pages import session_over

pytestmark = pytest.mark.anyio


async def test_the_end_of_the_name_says_which_form_a_report_is_saved_in(tmp_path: Path) -> None:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "A question", 1.0, 1.0))
        await store.runs.add(RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0))
        session = session_over(store, tmp_path / "pages")
        session.renderer = ReportRenderer(None, "There is no Chromium.")
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
