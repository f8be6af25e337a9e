"""Files of a run are stored for its clients."""

import asyncio
import hashlib
import io
import tracemalloc

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.redaction import Redactor
from maniple.runs import EngineConfig, ExecutionEnvironment, RunRequest, open_engine
from maniple.runs.artifact_collector import ArtifactQuota, WorkspaceCollector
from maniple.store import open_store
from maniple.workspace import Workspaces
from tests.openai_server import SIMPLE, call
from tests.pictures import png
from tests.runs.test_recovery import events_of
from tests.store.samples import stored_run
from tests.team import checked, data, names, scripted_team, status

pytestmark = pytest.mark.anyio
_WORDS = ("one", "two", "three", "last")
KEY = "sk-canary-0123456789"


async def test_new_files_of_the_workspace_are_reported_before_the_end(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    workspace = workspaces.open("t")
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_engine(
            it.team,
            store,
            kind="server",
            config=EngineConfig(redactor=Redactor([KEY])),
            environment=ExecutionEnvironment(workspaces),
        ) as engine,
    ):
        made = []
        for content in (b"one", b"one", f"two {KEY}".encode()):
            workspace.write("sub/table.csv", content)
            request = RunRequest([HumanMessage("1+3=?")], thread_id="t")
            run_id = (await engine.submit(request)).run.run_id
            frames = checked(await events_of(engine, run_id))
            made.append(data(frames, "artifact"))
            if made[-1]:
                assert names(frames).index("artifact") < names(frames).index("run_status")
        artifact = await store.artifacts.get(made[2][0]["artifact_id"], "")
        content = await (await store.artifacts.open(artifact)).read()
    assert [len(one) for one in made] == [1, 0, 1], "the same content is kept once"
    [first] = made[0]
    assert (first["name"], first["media_type"], first["size"]) == ("table.csv", "text/csv", 3)
    assert first["url"] == f"/api/artifacts/{first['artifact_id']}"
    assert content == b"two " + b"*" * len(KEY)
    assert artifact.sha256 == hashlib.sha256(content).hexdigest()


async def test_a_copy_is_an_artifact_and_what_is_unchanged_is_none(tmp_path):
    """Each pair is what a run writes, and the names of its artifacts."""
    picture = png()
    steps = [
        (
            {"report.md": b"text", "chart.png": picture, "empty.txt": b""},
            ["chart.png", "empty.txt", "report.md"],
        ),
        ({}, []),
        ({"out/report.md": b"text"}, ["report.md"]),
        ({"out/report.md": b"text", "report.md": b"text"}, []),
        ({"aa/report.md": b"text", "zz/report.md": b"text"}, ["report.md", "report.md"]),
        ({"diagram.png": picture, "out/chart.png": picture}, ["chart.png", "diagram.png"]),
        ({"figures/figure-1.png": picture, "more/empty.txt": b""}, []),
        ({"data.csv": b"given"}, []),
        ({"copies/data.csv": b"given"}, ["data.csv"]),
        ({}, []),
    ]
    workspaces = Workspaces(tmp_path / "workspaces")
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        run = await stored_run(store)
        workspace = workspaces.open(run.thread_id)
        collector = WorkspaceCollector(store, workspaces, Redactor())
        workspaces.uploads(run.thread_id).add([("data.csv", io.BytesIO(b"given"))])
        for written, expected in steps:
            quota, found = ArtifactQuota.half(), []
            for path, content in written.items():
                workspace.write(path, content)
                found += [one.name async for one in collector.collect(run, quota)]  # after each call
            quota.complete()
            found += [one.name async for one in collector.collect(run, quota)]
            assert sorted(found) == expected, written


async def test_files_of_a_call_are_reported_during_the_run_and_drafts_are_not(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    first_is_told = asyncio.Event()

    @tool
    async def bash_tool(cmd: str) -> str:
        """Write."""
        if cmd != "one":
            await first_is_told.wait()
        workspaces.open("t").write("table.csv", cmd.encode())
        if cmd == "last":
            workspaces.open("t").write("other.csv", cmd.encode())
        return "written"

    # The model never answers what the last call gave: nothing but the files can be told after it.
    script = {**SIMPLE, "coder": [*(call("bash_tool", cmd=word) for word in _WORDS), {"hang": True}]}
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(script, checkpointer=store.checkpointer, toolbox=Offer({"coder": [bash_tool]})) as it,
        open_engine(it.team, store, kind="server", environment=ExecutionEnvironment(workspaces)) as engine,
    ):
        run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")], thread_id="t"))).run.run_id
        many = 0
        async with asyncio.timeout(60):
            async for page in engine.events(run_id):
                for record in page:
                    many += record.type == "artifact"
                if many:
                    first_is_told.set()
                if many == 2:  # the other file, told after all that was written to the first
                    await engine.cancel(run_id)
        frames = checked(await events_of(engine, run_id))
        made = [await store.artifacts.get(one["artifact_id"], "") for one in data(frames, "artifact")]
        kept = [await (await store.artifacts.open(one)).read() for one in made]
    assert [one.name for one in made] == ["table.csv", "other.csv", "table.csv"]
    assert kept == [b"one", b"last", b"last"], "a draft, and at the end the whole; what was told is not again"
    assert names(frames).index("artifact") > names(frames).index("tool_call_result")
    assert status(frames) == "cancelled"


async def test_what_a_run_keeps_while_it_goes_on_has_a_bound(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        outputs, run = WorkspaceCollector(store, workspaces, Redactor()), await stored_run(store)
        share, kept = ArtifactQuota(files=3, bytes=10), []
        for number, content in enumerate((b"1234", b"56", b"too many bytes", b"7", b"too many files")):
            workspaces.open(run.thread_id).write(str(number), content)
            kept += [made.size async for made in outputs.collect(run, share)]
    assert kept == [4, 2, 1]


async def test_drafts_leave_room_for_what_is_there_at_the_end(tmp_path):
    workspaces, share = Workspaces(tmp_path / "workspaces"), ArtifactQuota.half()
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        outputs, run = WorkspaceCollector(store, workspaces, Redactor()), await stored_run(store)
        made = []
        for round_ in range(2):
            for number in range(60):
                workspaces.open(run.thread_id).write(f"{round_}/{number}", f"{round_} {number}".encode())
            made.append(len([one async for one in outputs.collect(run, share)]))
            share.complete()
    assert made == [50, 50], "a run keeps a hundred in all"


async def test_of_many_runs_one_file_at_a_time_is_in_memory(tmp_path):
    workspaces, size = Workspaces(tmp_path / "workspaces"), 5_000_000
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        outputs, runs = (
            WorkspaceCollector(store, workspaces, Redactor()),
            [await stored_run(store) for _ in range(6)],
        )
        for run in runs:
            workspaces.open(run.thread_id).write("large", b"x" * size)

        async def collect(run):
            return [made.size async for made in outputs.collect(run)]

        tracemalloc.start()
        try:
            sizes = await asyncio.gather(*map(collect, runs))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert sizes == [[size]] * 6
    assert peak < 3 * size, "one, and what reading it takes"


async def test_a_link_out_of_the_workspace_is_not_stored(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    (tmp_path / "secret").write_text("private")
    (workspaces.open("t").path / "link").symlink_to(tmp_path / "secret")
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server", environment=ExecutionEnvironment(workspaces)) as engine,
    ):
        run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")], thread_id="t"))).run.run_id
        frames = checked(await events_of(engine, run_id))
    assert data(frames, "artifact") == []
    assert frames[-1][0] == "final_session_state"


async def test_many_uploads_and_one_bad_name_hide_nothing_that_was_made(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    workspace = workspaces.open("t")
    workspaces.uploads("t").add((f"{number:03}", io.BytesIO(b"given")) for number in range(120))
    workspace.write("made.txt", b"made")
    workspace.write("005", b"taken")  # as long as it was
    (workspace.path / "bad\udcff").write_bytes(b"x")
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server", environment=ExecutionEnvironment(workspaces)) as engine,
    ):
        run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")], thread_id="t"))).run.run_id
        frames = checked(await events_of(engine, run_id))
    assert [one["name"] for one in data(frames, "artifact")] == ["005", "made.txt"]


async def test_of_many_files_the_newest_are_retained(tmp_path):
    workspaces = Workspaces(tmp_path / "workspaces")
    workspace = workspaces.open("t")
    for number in range(150):
        workspace.write(f"{number:03}", str(number).encode())
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_engine(it.team, store, kind="server", environment=ExecutionEnvironment(workspaces)) as engine,
    ):
        made = []
        for path in ("out/result.csv", "z/last.csv"):
            workspace.write(path, path.encode())
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")], thread_id="t"))).run.run_id
            frames = checked(await events_of(engine, run_id))
            made.append([one["name"] for one in data(frames, "artifact")])
    assert len(made[0]) == 100
    assert "result.csv" in made[0]
    assert made[1] == ["last.csv"]
