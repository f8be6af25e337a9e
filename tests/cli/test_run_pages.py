"""The page of a run as a file of the person's."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from maniple.cli.chat import saved_files
from maniple.cli.chat.attachments import Attachments
from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.chat.session import ChatSession
from maniple.cli.render.plain import PlainDisplay
from maniple.store import RunRecord, Store, Thread, open_store
from maniple.workspace import Workspaces
from tests.cli.events import small_talk
from tests.cli.runs import NoConversations, ScriptedEngine, ScriptedRun, team_of

pytestmark = pytest.mark.anyio


def session_over(store: Store, pages: Path) -> ChatSession:
    conversations = NoConversations()
    conversations.store = store
    nothing = Attachments(Workspaces(Path("/proc/none")))
    view = PlainDisplay(io.StringIO(), io.StringIO())
    engine = ScriptedEngine(ScriptedRun(small_talk()))
    return ChatSession(team_of(engine), conversations, lambda: view, nothing, pages_folder=pages)  # type: ignore[arg-type]


async def test_the_page_of_the_last_run_is_written_with_private_permissions(tmp_path: Path) -> None:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "T", 1.0, 1.0))
        await store.runs.add(RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0))
        session = session_over(store, tmp_path / "pages")
        assert (await run_slash_command(session, "/page")).startswith("No run was shown")
        await session.ask("Hello")
        file = tmp_path / "pages" / "1.html"
        assert await run_slash_command(session, "/page") == f"Page of the run: {file}"
        assert 'id="events"' in file.read_text(encoding="utf-8")
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_an_unwritable_page_is_reported_and_no_link_is_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "1.html").symlink_to(victim)
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "T", 1.0, 1.0))
        await store.runs.add(RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0))
        session = session_over(store, tmp_path / "pages")
        await session.ask("Hello")
        assert "cannot be written" in await run_slash_command(session, "/page")
    assert victim.read_text() == "mine"


async def test_a_page_is_opened_in_the_desktops_web_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(saved_files, "webbrowser", SimpleNamespace(open=lambda url: bool(asked.append(url))))
    assert not await saved_files.open_page(Path("/tmp/a b.html"))
    assert asked == ["file:///tmp/a%20b.html"]
