"""A question is asked again on a branch: the old answer stays, and each branch goes on by itself."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import read_event
from maniple.report_files.stored_reports import read_answer
from maniple.runs import (
    BranchPointGone,
    EngineConfig,
    NotFound,
    RunRequest,
    ThreadBusy,
    TooManyBranches,
    branches,
    open_engine,
)
from maniple.runs.engine_config import ExecutionEnvironment
from maniple.service.thread_views import read_thread_detail
from maniple.store import Thread, open_store
from maniple.workspace import EditHistory, Workspaces
from tests.openai_server import reply
from tests.team import checked, scripted_team

pytestmark = pytest.mark.anyio


def script(*answers):
    return {"coordinator": [reply(answer) for answer in answers]}


class Opened:
    def __init__(self, it, store, engine, workspaces) -> None:
        self.it, self.store, self.engine, self.workspaces = it, store, engine, workspaces

    async def ask(self, text, thread_id="t", **request):
        accepted = await self.engine.submit(RunRequest([HumanMessage(text)], thread_id, **request))
        return await self.finished(accepted)

    async def branch(self, run, text="", owner=""):
        return await self.finished(await self.engine.branch_run(run.run_id, text, owner))

    async def finished(self, accepted):
        pages = [page async for page in self.engine.events(accepted.run.run_id, accepted.after)]
        checked([read_event(one.type, one.data) for page in pages for one in page])
        active = self.engine.tasks.active.get(accepted.run.run_id)
        if active is not None and active.task is not None:
            await asyncio.wait([active.task])
        return await self.engine.status(accepted.run.run_id)

    async def said(self, thread_id):
        thread = await self.store.threads.get(thread_id, None)
        detail = await read_thread_detail(self.store, self.it.team, thread)
        return [message.content for message in detail.messages]

    async def runs(self, thread_id):
        return [run.run_id for run in reversed(await self.store.runs.list_by_thread(thread_id))]


@pytest.fixture
def opening(tmp_path):
    @asynccontextmanager
    async def opened(script):
        workspaces = Workspaces(tmp_path / "workspaces")
        async with (
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
            scripted_team(script, checkpointer=store.checkpointer) as it,
            open_engine(
                it.team,
                store,
                kind="server",
                config=EngineConfig(drain_seconds=0.1),
                environment=ExecutionEnvironment(workspaces),
            ) as engine,
        ):
            yield Opened(it, store, engine, workspaces)

    return opened


async def test_an_edited_question_is_answered_on_a_branch_and_the_old_answer_stays(opening):
    async with opening(script("One.", "Two.", "Three.", "Other two.", "Four.")) as here:
        first, second, third = [await here.ask(text) for text in ("first", "second", "third")]
        edited = await here.branch(second, "second, edited")
        assert edited.thread_id != "t"
        assert await here.said(edited.thread_id) == ["first", "One.", "second, edited", "Other two."]
        assert await here.said("t") == ["first", "One.", "second", "Two.", "third", "Three."]
        assert await here.runs(edited.thread_id) == [first.run_id, edited.run_id]
        assert await here.runs("t") == [first.run_id, second.run_id, third.run_id]
        assert await read_answer(here.store, second) == "Two."
        await here.ask("then", edited.thread_id)
        assert (await here.said(edited.thread_id))[-2:] == ["then", "Four."]
        newest = here.it.server.requests[-1]["messages"]
        shown = json.dumps([message["content"] for message in newest])
        assert "Other two." in shown and "Three." not in shown


async def test_an_answer_is_generated_again_to_the_same_question_and_options(opening):
    from maniple.graph import RunOptions

    async with opening(script("One.", "One again.", "One once more.")) as here:
        run = await here.ask("first", options=RunOptions(locale="de-DE"))
        again = await here.branch(run)
        assert await here.said(again.thread_id) == ["first", "One again."]
        assert RunRequest.of(again).options.locale == "de-DE"
        third = await here.branch(again)
        made = await here.store.threads.get(third.thread_id, None)
        # It stands beside the others, not below one of them.
        assert (made.parent_id, made.branched_run, made.root_id) == ("t", run.run_id, "t")
        found = await here.store.threads.list_branches(["t"])
        assert [one.thread_id for one in found["t"]] == [again.thread_id, third.thread_id]
        assert [one.thread_id for one in await here.store.threads.list(None)] == ["t"]


async def test_a_copy_begins_with_all_runs_and_both_go_on_by_themselves(opening):
    async with opening(script("One.", "Two, copied.", "Two.", "Two b.")) as here:
        first = await here.ask("first")
        here.workspaces.open("t").write("notes.txt", b"mine")
        copy = await here.engine.copy_thread("t")
        assert await here.runs(copy.thread_id) == [first.run_id]
        assert here.workspaces.locate(copy.thread_id).read("notes.txt", 100).content == b"mine"
        assert copy.note == ""
        copied = await here.ask("second", copy.thread_id)
        newest = here.it.server.requests[-1]["messages"]
        assert "One." in json.dumps([message["content"] for message in newest])
        assert await here.said(copy.thread_id) == ["first", "One.", "second", "Two, copied."]
        assert await here.said("t") == ["first", "One."]
        detail = await read_thread_detail(here.store, here.it.team, copy)
        assert detail.branch_points == []  # the thread has nothing that the copy has not
        second = await here.ask("second")
        again = await here.branch(copied)
        assert await here.said(again.thread_id) == ["first", "One.", "second", "Two b."]
        detail = await read_thread_detail(here.store, here.it.team, copy)
        [point] = detail.branch_points
        beside = [second.run_id, copied.run_id, again.run_id]
        assert (point.run_id, [one.run_id for one in point.branches]) == (copied.run_id, beside)
        deleted = await here.engine.delete_thread("t")
        assert {copy.thread_id, again.thread_id} < {*deleted}


async def test_a_copy_of_a_thread_without_runs_is_a_conversation_of_its_own(opening):
    async with opening(script("Busy.")) as here:
        with pytest.raises(NotFound):
            await here.engine.copy_thread("t")
        await here.store.threads.create(Thread("t", "", "Title", 1.0, 1.0, metadata='{"user": "Ada"}'))
        copy = await here.engine.copy_thread("t")
        assert (copy.title, copy.metadata, copy.root_id) == ("Title", '{"user": "Ada"}', "")
        await here.engine.delete_thread("t")
        assert await here.store.threads.get(copy.thread_id, None) is not None


async def test_a_branch_of_a_branch_begins_with_the_runs_of_both(opening):
    async with opening(script("1", "2", "2b", "3b", "3c")) as here:
        first, second = await here.ask("a"), await here.ask("b")
        branched = await here.branch(second, "b2")
        third = await here.ask("c", branched.thread_id)
        again = await here.branch(third, "c2")
        assert await here.said(again.thread_id) == ["a", "1", "b2", "2b", "c2", "3c"]
        assert await here.runs(again.thread_id) == [first.run_id, branched.run_id, again.run_id]
        deleted = await here.engine.delete_thread(branched.thread_id)
        assert deleted == [again.thread_id, branched.thread_id]
        assert await here.runs("t") == [first.run_id, second.run_id]
        await here.engine.delete_thread("t")
        assert await here.store.check() == []


async def test_a_question_older_than_the_stored_checkpoints_is_branched_from_the_messages(opening):
    async with opening(script("1", "2", "3", "2b")) as here:
        runs = [await here.ask(text) for text in ("a", "b", "c")]
        base = runs[1].base_checkpoint
        # As a version before this one left it: only the newest checkpoint.
        await here.store._database.execute(
            "DELETE FROM checkpoints WHERE checkpoint_id = ? AND thread_id = 't'", (base,)
        )
        branched = await here.branch(runs[1], "b2")
        assert await here.said(branched.thread_id) == ["a", "1", "b2", "2b"]


async def test_a_question_whose_conversation_is_gone_is_refused(opening):
    async with opening(script("1", "2")) as here:
        await here.ask("a")
        later = await here.ask("b")
        stored = json.loads(later.request)
        stored["messages"][-1]["data"]["id"] = "another"
        await here.store.runs.change(later.run_id, request=json.dumps(stored), base_checkpoint="gone")
        with pytest.raises(BranchPointGone):
            await here.engine.branch_run(later.run_id)
        assert (await here.store.threads.list_branches(["t"]))["t"] == []


async def test_the_files_of_a_branch_are_those_of_its_question(opening):
    async with opening(script("1", "2", "2b")) as here:
        await here.ask("a")
        workspace, history = here.workspaces.open("t"), EditHistory.of(here.workspaces, "t")
        history.write(workspace, "notes.md", b"first")
        await asyncio.sleep(0.03)  # file times have the resolution of a tick
        second = await here.ask("b")
        history.write(workspace, "notes.md", b"second")
        history.write(workspace, "new.md", b"new")
        branched = await here.branch(second)
        copy = here.workspaces.locate(branched.thread_id)
        assert copy.read("notes.md", 10).content == b"first"
        assert copy.is_missing("new.md")
        assert workspace.read("notes.md", 10).content == b"second"
        assert (await here.store.threads.get(branched.thread_id, None)).note == ""


async def test_a_file_of_unknown_origin_is_named_in_the_note(opening):
    async with opening(script("1", "1b")) as here:
        run = await here.ask("a")
        (here.workspaces.open("t").path / "log.txt").write_text("by code")
        branched = await here.branch(run)
        note = (await here.store.threads.get(branched.thread_id, None)).note
        assert "log.txt" in note and "by code" in note


async def test_a_file_that_a_later_run_made_is_not_in_the_branch(opening):
    async with opening(script("1", "1b")) as here:
        run = await here.ask("a")
        (here.workspaces.open("t").path / "chart.png").write_bytes(b"chart")
        await here.store.artifacts.add(run, "chart.png", "image/png", b"chart")
        branched = await here.branch(run)
        assert here.workspaces.locate(branched.thread_id).is_missing("chart.png")
        assert (await here.store.threads.get(branched.thread_id, None)).note == ""


async def test_a_thread_that_works_or_belongs_to_another_is_not_branched(opening):
    async with opening({"coordinator": [reply("1"), {"hang": True}]}) as here:
        run = await here.ask("a")
        with pytest.raises(NotFound):
            await here.engine.branch_run(run.run_id, "b", "somebody")
        working = await here.engine.submit(RunRequest([HumanMessage("b")], "t"))
        with pytest.raises(ThreadBusy):
            await here.engine.branch_run(run.run_id, "b")
        await here.engine.cancel(working.run.run_id)
        here.it.server.reset(script("1b"))
        assert (await here.branch(run, "b")).status == "completed"


async def test_a_conversation_has_a_limit_of_branches(opening, monkeypatch):
    monkeypatch.setattr(branches, "MAX_BRANCHES", 1)
    async with opening(script("1", "1b")) as here:
        run = await here.ask("a")
        await here.branch(run)
        with pytest.raises(TooManyBranches):
            await here.engine.branch_run(run.run_id)


async def test_a_picture_of_the_question_stays_when_its_text_is_edited():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert branches.replace_text([{"type": "text", "text": "old"}, picture], "new") == [
        {"type": "text", "text": "new"},
        picture,
    ]
