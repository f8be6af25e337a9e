"""`/sources`: what the last answer was built on."""

import io
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from maniple.cli.chat.attachments import Attachments
from maniple.cli.chat.prompt import run_slash_command
from maniple.cli.chat.session import ChatSession, Conversations
from maniple.cli.render.plain import PlainDisplay
from maniple.store import RunRecord, Store, open_store
from maniple.workspace import Workspaces
from tests.cli.runs import ScriptedEngine, team_of
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio
NOTHING = "This conversation has no sources yet."


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=False) as store:
        yield store


async def nobody(run: RunRecord) -> RunRecord | None:
    return None


def session_on(store: Store, thread_id: str) -> ChatSession:
    conversations = Conversations(store, recover=nobody)
    view, nothing = PlainDisplay(io.StringIO(), io.StringIO()), Attachments(Workspaces(Path("/proc/none")))
    engine = ScriptedEngine()
    return ChatSession(team_of(engine), conversations, lambda: view, nothing, thread_id=thread_id)  # type: ignore[arg-type]


async def test_the_sources_of_the_newest_run_that_has_some_are_listed_by_number(store: Store) -> None:
    thread = await store.threads.create(a_thread())
    session = session_on(store, thread.thread_id)
    older = await store.runs.add(a_run(thread, at=1.0))
    assert await run_slash_command(session, "/sources") == NOTHING
    await store.evidence(older.run_id).add("https://e.test/old", "Old", "page", "old")
    newest = await store.runs.add(a_run(thread, at=2.0))
    assert "https://e.test/old" in await run_slash_command(session, "/sources"), "the newest one has none"
    evidence = store.evidence(newest.run_id)
    await evidence.add("https://e.test/tea", "Tea", "result", "3 euros")
    page = await evidence.add("https://e.test/cups", "Cups", "page", "round")
    shown = await run_slash_command(session, "/sources")
    at = datetime.fromtimestamp(page.retrieved_at).astimezone()
    assert shown.splitlines()[2:] == [
        f"[2] Cups (page, {at:%Y-%m-%d %H:%M})",
        "    https://e.test/cups",
    ]
    assert shown.startswith("[1] Tea (result, ")
    assert abs(at.timestamp() - time.time()) < 60


async def test_a_new_conversation_has_none(store: Store) -> None:
    assert await run_slash_command(session_on(store, "new"), "/sources") == NOTHING
