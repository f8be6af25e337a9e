"""Threads and runs of an earlier version go on: today's service opens its data folder (README.md here).

Only what clients can see is checked, so that these tests hold whatever is stored, and how.
"""

import asyncio
import json
import sqlite3
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maniple.store.configured import move_to_postgres
from tests.api.in_process import InProcessService, numbered, open_service
from tests.grammar import Client
from tests.openai_server import OpenAIServer, call, reply, role_and_run, serving
from tests.postgres import Cluster
from tests.serving import Frame
from tests.team import data, plan, step
from tests.upgrade.make_data_folder import (
    ANSWERED,
    ARCHIVE,
    CASES,
    DECISIONS,
    MESSAGES,
    NO_DATA,
    RETRIED,
    UPLOAD,
    WRITTEN,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
WAIT_SECONDS = 60
CASE_OF: dict[str, dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))
CONVERT = {"action": "add", "after": 1, "agent_name": "coder", "title": "Convert", "description": "Convert."}
DECISION = {"decision": "change_plan", "reply": "In euros.", "changes": [CONVERT], "steps": []}
SCRIPT = {
    "coordinator": [call("handoff_to_planner", locale="en-US")],
    "planner": [reply(json.dumps(plan(step("coder"), step("reporter"))))],
    "coder": [reply("It is 5.")],
    "researcher": [reply("Now it was found.")],
    "file_manager": [reply("Written.")],
    "reporter": [reply("# The new report of {run}")],
    "supervisor": [reply(json.dumps(DECISION))],
}
"""No member begins with a tool or a question: what was asked or called before is in the data folder."""
TEAM = {"step_retries": 0, "max_plan_adaptations": 0}


@dataclass
class Upgraded:
    """Today's service on the folder of the earlier one."""

    it: InProcessService
    model: OpenAIServer
    home: Path

    async def post(self, path: str, body: Any = None) -> dict[str, Any]:
        response = await self.it.client.post(path, json=body)
        assert response.status_code == 202, response.text
        return response.json()

    async def resume(self, name: str, answer: Any, **which: str) -> None:
        await self.post(f"/api/runs/{CASE_OF[name]['run_id']}/resume", {"answer": answer, **which})

    async def run(self, name: str) -> dict[str, Any]:
        return await self.it.get(f"/api/runs/{CASE_OF[name]['run_id']}")

    async def frames(self, name: str) -> list[Frame]:
        """Follow the run of a case to its end or pause, as the old client reads it."""
        return await self.frames_of(CASE_OF[name]["run_id"])

    async def frames_of(self, run_id: str) -> list[Frame]:
        async with asyncio.timeout(WAIT_SECONDS):
            response = await self.it.client.get(f"/api/runs/{run_id}/events")
        read = numbered(response.text)
        assert [number for number, _ in read] == list(range(1, 1 + len(read)))
        frames = [frame for _, frame in read]
        for segment in segments(frames):
            Client().read(segment)
        return frames

    async def live_frames(self, name: str) -> list[Frame]:
        """Return all events of the run of a case, also those that the old client is not sent."""
        path = f"/api/runs/{CASE_OF[name]['run_id']}/events?view=live"
        async with asyncio.timeout(WAIT_SECONDS):
            return [frame for _, frame in numbered((await self.it.client.get(path)).text)]

    async def events(self, run_id: str, name: str, times: int) -> None:
        """Follow a run until it has so many events of this name."""
        found = 0
        async with asyncio.timeout(WAIT_SECONDS):
            async for page in self.it.service.engine.events(run_id):
                found += sum(one.type == name for one in page)
                if found >= times:
                    return
        raise AssertionError(f"the run ended with {found} events {name}")

    async def completed(self, name: str, gap: str = "") -> list[Frame]:
        """Return the frames of the last segment of a run, which must complete without questions.

        It must have no gap, or the one whose reason contains `gap`.
        """
        last = segments(await self.frames(name))[-1]
        [status] = data(last, "run_status")
        reasons = [one["reason"] for one in status.get("gaps", ())]
        assert status["status"] == "completed"
        assert [gap in one for one in reasons] == ([True] if gap else [])
        assert data(last, "interrupt") == []
        assert (await self.run(name))["status"] == "completed"
        return last

    def prompts(self, role: str, name: str) -> list[str]:
        """Return what each call of a role in the conversation of a case was shown."""
        asked = [request["messages"] for request in self.model.requests]
        return [json.dumps(one, ensure_ascii=False) for one in asked if role_and_run(one) == (role, name)]

    def asked(self, name: str) -> dict[str, int]:
        """Return how often each role was asked in the conversation of a case."""
        calls = {role: len(self.prompts(role, name)) for role in SCRIPT}
        return {role: number for role, number in calls.items() if number}

    async def file(self, name: str, path: str) -> bytes:
        response = await self.it.client.get(f"/api/threads/{CASE_OF[name]['thread_id']}/files/{path}")
        assert response.status_code == 200, response.text
        return response.content


def segments(frames: list[Frame]) -> list[list[Frame]]:
    """Return the frames of each request to the run: each one ends with the state of the session."""
    ends = [number for number, (name, _) in enumerate(frames, 1) if name == "final_session_state"]
    assert ends[-1:] == [len(frames)], frames[-3:]
    return [frames[first:last] for first, last in zip([0, *ends], ends, strict=False)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def streams(home: Path) -> dict[str, list[Frame]]:
    """The streams as the earlier version sent them."""
    read: dict[str, list[Any]] = json.loads((home / "streams.json").read_bytes())
    return {name: [(event, content) for event, content in frames] for name, frames in read.items()}


@asynccontextmanager
async def upgrading(
    home: Path, store: Mapping[str, Any] | None = None, **roles: Any
) -> AsyncIterator[Upgraded]:
    with serving({**SCRIPT, **roles}) as model:
        async with open_service(model.base_url, home, team=TEAM, store=store or {}) as it:
            yield Upgraded(it, model, home)


@pytest.fixture
async def upgraded(home: Path) -> AsyncIterator[Upgraded]:
    async with upgrading(home) as opened:
        yield opened


async def move(cluster: Cluster, home: Path) -> dict[str, Any]:
    """Move the database to PostgreSQL; return the settings of the store."""
    url = cluster.create()
    await move_to_postgres(home / "data" / "maniple.db", url, lambda *_: None)
    return {"backend": "postgres", "url": url, "pool": 4}


def test_the_folder_names_no_place_where_it_was_made(home: Path):
    assert b"/maniple-made-" not in (home / "data" / "maniple.db").read_bytes()


async def test_no_run_is_lost_and_each_reaches_its_end_or_its_pause(upgraded: Upgraded):
    for name in CASE_OF:
        await upgraded.frames(name)
    runs = {one["run_id"]: one["status"] for one in (await upgraded.it.get("/api/runs?limit=100"))["runs"]}
    ended = {name: runs[case["run_id"]] for name, case in CASE_OF.items()}
    left = {"review", "approval", "question", "asking"}
    assert {name for name, status in ended.items() if status == "interrupted"} == left
    others = {name: status for name, status in ended.items() if name not in left}
    assert others == dict.fromkeys(others, "completed") | {"failed": "failed", "cancelled": "cancelled"}
    assert await upgraded.it.service.store.check() == []


async def test_what_clients_were_sent_is_replayed_as_it_was(upgraded: Upgraded, streams: dict[str, Any]):
    for name, told in streams.items():
        assert (await upgraded.frames(name))[: len(told)] == told, name
    for name in ("finished", "followed", "failed", "gaps", "cancelled", "chatted", "review"):
        assert await upgraded.frames(name) == streams[name]


async def test_a_file_that_was_migrated_has_a_backup_of_what_it_was(home: Path):
    database = home / "data" / "maniple.db"
    before = schema_and_runs(database)
    async with upgrading(home):
        pass
    backup = database.with_name(f"maniple.db.schema-{before[0]}.backup")
    was_migrated = schema_and_runs(database)[0] > before[0]
    assert list_backups(home) == [backup] * was_migrated
    if was_migrated:
        assert schema_and_runs(backup) == before


def list_backups(home: Path) -> list[Path]:
    return [*home.rglob("*.backup")]


def schema_and_runs(database: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    return schema, runs


async def test_a_follow_up_knows_the_earlier_turns_and_their_files(upgraded: Upgraded):
    thread = CASE_OF["finished"]["thread_id"]
    read = await upgraded.it.get(f"/api/threads/{thread}")
    told = [CASE_OF[name]["run_id"] for name in ("followed", "finished")]
    assert [one["run_id"] for one in read["runs"]] == told
    assert await upgraded.file("finished", UPLOAD[0]) == UPLOAD[1]
    assert await upgraded.file("finished", WRITTEN["path"]) == WRITTEN["content"].encode()
    listed = {one["path"]: one for one in (await upgraded.it.get(f"/api/threads/{thread}/files"))["files"]}
    assert (listed[UPLOAD[0]]["uploaded"], listed[WRITTEN["path"]]["uploaded"]) == (True, False)
    report = await upgraded.it.client.get(f"/api/runs/{CASE_OF['finished']['run_id']}/report")
    assert "# The report of finished" in report.text
    run = await upgraded.post(f"/api/threads/{thread}/runs", {"input": "And now?"})
    frames = await upgraded.frames_of(run["run_id"])
    assert data(frames, "run_status") == [{"status": "completed"}]
    [coordinator], [planner] = (upgraded.prompts(role, "finished") for role in ("coordinator", "planner"))
    for known in ("Do it. #run=finished", "# The report of finished", "Do it. #run=followed", "And now?"):
        assert known in coordinator, known
        assert known in planner, known
    for path in (UPLOAD[0], WRITTEN["path"]):
        assert path in planner


async def test_a_client_that_hands_its_messages_back_continues_its_thread(upgraded: Upgraded):
    case = CASE_OF["chatted"]
    body = {"messages": [*case["messages"], {"role": "user", "content": "And now?"}]}
    response = await upgraded.it.client.post("/api/chat/stream", json=body)
    frames = [frame for _, frame in numbered(response.text)]
    Client().read(frames)
    assert data(frames, "run")[0]["thread_id"] == case["thread_id"]
    assert data(frames, "run_status") == [{"status": "completed"}]
    [planner] = upgraded.prompts("planner", "chatted")
    assert "# The report of chatted" in planner


async def test_a_plan_that_waits_for_its_review_is_accepted_and_done(upgraded: Upgraded):
    [waiting] = (await upgraded.run("review"))["interrupts"]
    await upgraded.resume("review", "accept", interrupt_id=waiting["interrupt_id"])
    last = await upgraded.completed("review")
    assert last[-1][1]["messages"][-1]["content"].startswith("# The new report of review")
    assert upgraded.asked("review") == {"coder": 1, "reporter": 1}


async def test_a_plan_that_waits_for_its_review_is_written_again_as_the_user_says(upgraded: Upgraded):
    await upgraded.resume("review", "Only one step, please.")
    last = segments(await upgraded.frames("review"))[-1]
    assert data(last, "run_status") == [{"status": "interrupted"}]
    [planner] = upgraded.prompts("planner", "review")
    assert "Only one step, please." in planner
    await upgraded.resume("review", "accept")
    await upgraded.completed("review")


async def test_a_call_that_waits_for_approval_runs_when_it_is_given(upgraded: Upgraded):
    [waiting] = (await upgraded.run("approval"))["interrupts"]
    assert (waiting["kind"], waiting["payload"]["tool_name"]) == ("tool_approval", "write_file")
    await upgraded.resume("approval", {"type": "approve"}, interrupt_id=waiting["interrupt_id"])
    last = await upgraded.completed("approval")
    assert len(data(last, "tool_call_result")) == 1
    assert await upgraded.file("approval", "approval.md") == b"4\n"
    assert upgraded.asked("approval") == {"file_manager": 1, "reporter": 1}


async def test_a_call_that_waits_for_approval_does_not_run_when_it_is_rejected(upgraded: Upgraded):
    await upgraded.resume("approval", "No, there is no need.")
    await upgraded.completed("approval", "No, there is no need.")
    [member] = upgraded.prompts("file_manager", "approval")
    assert "No, there is no need." in member
    path = f"/api/threads/{CASE_OF['approval']['thread_id']}/files/approval.md"
    assert (await upgraded.it.client.get(path)).status_code == 404


async def test_a_question_of_a_member_is_answered(upgraded: Upgraded):
    [waiting] = (await upgraded.run("question"))["interrupts"]
    assert waiting["kind"] == "question"
    await upgraded.resume("question", "In the year 2024.", interrupt_id=waiting["interrupt_id"])
    await upgraded.completed("question")
    [member] = upgraded.prompts("researcher", "question")
    assert member.count("In the year 2024.") == 1


async def test_an_answer_whose_turn_had_not_come_is_used_and_nothing_is_asked_again(upgraded: Upgraded):
    for name, given in ANSWERED.items():
        await upgraded.completed(name)
        frames = await upgraded.live_frames(name)
        asked = [one["interrupt_id"] for one in data(frames, "interrupt")]
        assert [(one["interrupt_id"], one["answer"]) for one in data(frames, "user_answer")] == [
            (asked[0], given)
        ]
    assert upgraded.asked("review_answered") == {"coder": 1, "reporter": 1}
    for name in ("approval_answered", "answer_stored"):
        assert upgraded.asked(name) == {"file_manager": 1, "reporter": 1}
        assert await upgraded.file(name, f"{name}.md") == b"4\n"
    [member] = upgraded.prompts("researcher", "question_answered")
    assert member.count("2024") == 1


async def test_an_approved_call_that_was_done_is_neither_asked_for_nor_done_again(upgraded: Upgraded):
    last = await upgraded.completed("approval_done")
    assert len(data(last, "tool_call_result")) == 1
    assert await upgraded.file("approval_done", "approval_done.md") == b"4\n"
    assert upgraded.asked("approval_done") == {"file_manager": 1, "reporter": 1}


async def test_what_the_user_did_while_steps_worked_has_its_effect_exactly_once(upgraded: Upgraded):
    case = CASE_OF["killed"]
    frames = await upgraded.frames("killed")
    assert data(frames, "run_status")[-1] == {"status": "completed"}
    told = [(one["title"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]
    done = {"Ask", "Work", "Convert", "Sum", "Check", "Report"}
    assert sorted(told) == sorted([("Draw", "skipped"), *((title, "completed") for title in done)])
    assert [one["message_id"] for one in data(frames, "user_message")] == case["message_ids"]
    decided = [(one["message_id"], one["disposition"]) for one in data(frames, "user_message_answer")]
    dispositions = ("plan_changed", "next_run", "plan_changed")
    assert decided == list(zip(case["message_ids"], dispositions, strict=True))
    assert upgraded.asked("killed") == {"researcher": 1, "supervisor": 1, "coder": 4, "reporter": 1}
    said = [one["content"] for one in frames[-1][1]["messages"]]
    heard = (MESSAGES[0], MESSAGES[2], DECISIONS[0]["reply"], DECISION["reply"])
    assert [said.count(text) for text in heard] == [1, 1, 1, 1]
    assert MESSAGES[1] not in said


@pytest.mark.parametrize("name", ["killed", "step_answer_stored"])
async def test_the_answer_to_a_step_is_used_once_and_its_question_is_not_asked_again(
    upgraded: Upgraded, name: str
):
    frames = await upgraded.frames(name)
    assert data(frames, "run_status")[-1] == {"status": "completed"}
    frames = await upgraded.live_frames(name)
    asked = [one["interrupt_id"] for one in data(frames, "step_interrupt")]
    assert asked == [CASE_OF[name]["interrupt_id"]]
    assert data(frames, "interrupt") == []
    [member] = upgraded.prompts("researcher", name)
    assert member.count("2024") == 1


async def test_a_message_that_was_to_be_the_next_run_becomes_it_once(upgraded: Upgraded):
    case = CASE_OF["killed"]
    await upgraded.frames("killed")
    frames = await upgraded.frames_of(case["message_ids"][1])
    assert data(frames, "run_status") == [{"status": "completed"}]
    said = [one["content"] for one in frames[-1][1]["messages"]]
    assert said.count(MESSAGES[1]) == 1
    runs = (await upgraded.it.get(f"/api/threads/{case['thread_id']}"))["runs"]
    assert [one["run_id"] for one in runs] == [case["message_ids"][1], case["run_id"]]


async def test_a_step_that_asked_asks_the_same_again_and_takes_the_answer(upgraded: Upgraded):
    await upgraded.frames("asking")  # the other step ends meanwhile, so the whole run waits
    [waiting] = (await upgraded.run("asking"))["interrupts"]
    assert waiting["kind"] == "question"
    await upgraded.resume("asking", "2024", interrupt_id=waiting["interrupt_id"])
    await upgraded.completed("asking")
    [member] = upgraded.prompts("researcher", "asking")
    assert member.count("2024") == 1


async def test_a_step_that_asked_is_answered_while_the_other_one_works(home: Path):
    case = CASE_OF["asking"]
    async with upgrading(home, coder=[{"hang": True}]) as upgraded:
        await upgraded.events(case["run_id"], "step_interrupt", 2)  # one before the kill, and one after it
        [waiting] = (await upgraded.run("asking"))["interrupts"]
        assert waiting["interrupt_id"] == case["interrupt_id"]
        await upgraded.resume("asking", "2024", interrupt_id=waiting["interrupt_id"])
        await upgraded.events(case["run_id"], "step_resumed", 1)
        await asyncio.to_thread(
            upgraded.model.wait_for, lambda _: bool(upgraded.prompts("researcher", "asking"))
        )
        assert (await upgraded.run("asking"))["status"] == "running"
        [member] = upgraded.prompts("researcher", "asking")
    assert member.count("2024") == 1


@pytest.mark.parametrize("name", ["failed", "gaps"])
async def test_a_retry_does_what_was_not_done_and_nothing_else(upgraded: Upgraded, name: str):
    run = await upgraded.run(name)
    assert [gap["step"] for gap in run["gaps"]][:1] == ["Find"]
    await upgraded.post(f"/api/runs/{run['run_id']}/retry")
    last = await upgraded.completed(name)
    assert upgraded.asked(name) == {"researcher": 1, "reporter": 1}
    [reporter] = upgraded.prompts("reporter", name)
    for result in ("It is 4.", "Now it was found."):
        assert result in reporter
    assert last[-1][1]["messages"][-1]["content"].startswith(f"# The new report of {name}")


@pytest.mark.parametrize("name", RETRIED)
async def test_a_retry_whose_turn_had_not_come_is_done(upgraded: Upgraded, name: str):
    await upgraded.completed(name)
    assert upgraded.asked(name) == {"researcher": 1, "reporter": 1}


async def test_a_retry_that_fails_again_can_be_retried_again(home: Path):
    async with upgrading(home, researcher=[NO_DATA, reply("Now it was found.")]) as upgraded:
        for expected in (1, 2):
            await upgraded.post(f"/api/runs/{CASE_OF['gaps']['run_id']}/retry")
            last = segments(await upgraded.frames("gaps"))[-1]
            assert len(upgraded.prompts("researcher", "gaps")) == expected
        assert data(last, "run_status") == [{"status": "completed"}]
        assert "coder" not in upgraded.asked("gaps")


async def test_a_cancelled_run_stays_cancelled_and_its_thread_goes_on(upgraded: Upgraded):
    assert (await upgraded.run("cancelled"))["status"] == "cancelled"
    thread = CASE_OF["cancelled"]["thread_id"]
    run = await upgraded.post(f"/api/threads/{thread}/runs", {"input": "Once more."})
    assert data(await upgraded.frames_of(run["run_id"]), "run_status") == [{"status": "completed"}]
    [planner] = upgraded.prompts("planner", "cancelled")
    assert "Do it. #run=cancelled" in planner


async def test_a_request_whose_turn_had_not_come_is_answered(upgraded: Upgraded):
    await upgraded.completed("queued")
    assert upgraded.asked("queued") == {"coordinator": 1, "planner": 1, "coder": 1, "reporter": 1}


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_after_a_move_to_postgresql_runs_go_on_that_waited_were_queued_or_cut_off(
    home: Path, streams: dict[str, Any], cluster: Cluster
):
    async with upgrading(home, await move(cluster, home)) as moved:
        await test_no_run_is_lost_and_each_reaches_its_end_or_its_pause(moved)
        await test_what_clients_were_sent_is_replayed_as_it_was(moved, streams)
        await test_an_answer_whose_turn_had_not_come_is_used_and_nothing_is_asked_again(moved)
        await test_an_approved_call_that_was_done_is_neither_asked_for_nor_done_again(moved)
        await test_a_message_that_was_to_be_the_next_run_becomes_it_once(moved)
        await test_a_plan_that_waits_for_its_review_is_accepted_and_done(moved)
        await test_a_call_that_waits_for_approval_runs_when_it_is_given(moved)
        await test_a_question_of_a_member_is_answered(moved)
        await test_a_request_whose_turn_had_not_come_is_answered(moved)
