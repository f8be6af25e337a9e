"""Makes the data folder of `test_upgrade.py` with the service of the commit that is checked out.

`python -m tests.upgrade.make_data_folder` replaces `data.tar.xz` and `cases.json` beside this file; README.md
there says from which commit they are. The runs are brought into their states over HTTP against a scripted
model, and the service is killed with SIGKILL while some of them work or wait for their turn.
"""

import asyncio
import io
import json
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.api.in_process import numbered
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.runs.killing import Mortal
from tests.serving import Frame, environment
from tests.team import plan, step

HERE = Path(__file__).parent
ARCHIVE, CASES = HERE / "data.tar.xz", HERE / "cases.json"
MAX_BYTES = 300_000
WAIT_SECONDS = 60
LEFT_OUT = ("*.lock", "*.db-wal", "*.db-shm", "chat.log")
"""Files of the processes that had the folder open: they are gone, and the log is merged into the database."""
QUIET = {
    "MANIPLE_SANDBOX__BACKEND": "off",
    "MANIPLE_BROWSER__ENABLED": "false",
    "MANIPLE_MODELS__BASIC__MAX_RETRIES": "0",
    "MANIPLE_TEAM__STEP_RETRIES": "0",
    "MANIPLE_TEAM__MAX_PLAN_ADAPTATIONS": "0",
}
APPROVING = {"MANIPLE_RUNS__APPROVAL": '["write_file"]'}
WORKING = ("approval_done", "asking", "killed", "step_answer_stored")
"""The cases whose runs work when the service is killed; it lets no further run work."""
ANSWERED = {
    "review_answered": "accept",
    "approval_answered": {"type": "approve"},
    "question_answered": "2024",
    "answer_stored": {"type": "approve"},
}
RETRIED = ("gaps_retried", "retry_stored")
QUEUED = (*ANSWERED, *RETRIED, "queued")
"""The cases whose runs wait for their turn then."""
CUT = ("step_answer_stored", "answer_stored", "retry_stored")
"""The cases whose answer, or retry, was stored when the service was killed, and nothing after that."""
CUT_TABLES = {"tool_calls": "run_id", "checkpoints": "thread_id", "writes": "thread_id"}

UPLOAD = ("prices.csv", b"tea,3\ncoffee,4\n")
WRITTEN = {"path": "notes.md", "content": "# Notes\n\nTea costs 3 euros.\n"}
YEAR = "Which year?"
ADDED_BY_MESSAGE = {"action": "add", "after": 2, "agent_name": "coder", "title": "Sum", "description": "Sum."}
ADDED_BY_USER = {
    "action": "add",
    "after": 2,
    "agent_name": "coder",
    "title": "Check",
    "description": "Check.",
}
MESSAGES = ("Add the numbers up, too.", "Afterwards tell me a joke.", "Use euros throughout.")
DECISIONS = (
    {"decision": "change_plan", "reply": "Gladly.", "changes": [ADDED_BY_MESSAGE], "steps": []},
    {"decision": "next_run", "reply": "After this one.", "changes": [], "steps": []},
)

CODE = plan(step("coder", "Compute"), step("reporter", "Report"))
FILE = plan(step("file_manager", "Write"), step("reporter", "Report"))
ASKS = plan(step("researcher", "Ask"), step("reporter", "Report"))
SEARCH = plan(step("coder", "Compute"), step("researcher", "Find"), step("reporter", "Report"))
AT_ONCE: list[Any] = [
    {**step("researcher", "Ask"), "needs": []},
    {**step("coder", "Work"), "needs": []},
    {**step("coder", "Draw"), "needs": [1]},
    step("reporter", "Report"),
]
WAVES = plan(*AT_ONCE)
AWAY = {"status": 500, "error": "the scripted outage"}
HANG = {"hang": True}
NO_DATA = reply("STEP FAILED: no data")
ASK = call("ask_human", question=YEAR)
AT_WORK = {"researcher": [ASK, HANG], "coder": [HANG], "file_manager": [HANG], "reporter": [HANG]}
"""Members of whom none ends. A late call may get its reply from the script of the next run."""


def script(steps: dict[str, Any], **roles: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the replies of the model for one case."""
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(steps))],
        "coder": [reply("It is 4.")],
        "researcher": [reply("Found.")],
        "file_manager": [call("write_file", **WRITTEN), reply("Written.")],
        "reporter": [reply("# The report of {run}")],
        **roles,
    }


@dataclass
class Maker:
    """One life of the service, and the cases so far."""

    client: httpx.AsyncClient
    model: OpenAIServer
    database: Path
    cases: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    async def post(self, path: str, body: Any = None, status: int = 202) -> dict[str, Any]:
        response = await self.client.post(path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    async def begin(self, name: str, told: dict[str, Any], thread: str = "", **options: Any) -> str:
        """Start the run of a case on a thread, as a rule on its own; return the run's id."""
        self.model.reset(told)
        thread = thread or (await self.post("/api/threads", {}, 201))["thread_id"]
        body = {"input": f"Do it. #run={name}", **options}
        run_id = (await self.post(f"/api/threads/{thread}/runs", body))["run_id"]
        self.cases[name] = {"thread_id": thread, "run_id": run_id}
        return run_id

    async def frames(self, run_id: str, view: str = "langmanus") -> list[Frame]:
        """Follow a run until it has ended or waits."""
        response = await self.client.get(f"/api/runs/{run_id}/events?view={view}")
        return [frame for _, frame in numbered(response.text)]

    async def go_on(self, name: str, action: str, body: Any = None) -> None:
        """Answer or retry the run of a case."""
        if name in CUT:
            await asyncio.to_thread(cut_off, self.database, self.cases[name])
        await self.post(f"/api/runs/{self.cases[name]['run_id']}/{action}", body)

    async def settle(self, run_id: str, status: str) -> None:
        """Wait until the run has ended or waits, which must be with this status."""
        frames = await self.frames(run_id)
        assert [content for name, content in frames if name == "run_status"][-1]["status"] == status, frames
        assert (await self.client.get(f"/api/runs/{run_id}")).json()["status"] == status

    async def asked(self, role: str, times: int = 1) -> None:
        """Wait until the model was asked for a role so many times."""
        await asyncio.to_thread(self.model.wait_for, lambda stats: stats["by_role"].get(role) == times)

    async def event(self, run_id: str, name: str, times: int = 1) -> dict[str, Any]:
        """Follow a run that works until it has so many events of this name; return the last one's data."""
        path = f"/api/runs/{run_id}/events?view=live"
        async with asyncio.timeout(WAIT_SECONDS), self.client.stream("GET", path) as response:
            found = 0
            async for line in response.aiter_lines():
                found += line == f"event: {name}"
                if found == times and line.startswith("data: "):
                    return json.loads(line.removeprefix("data: "))
        raise AssertionError(f"the run ended without {times} events {name}")


async def make_ended(it: Maker) -> None:
    """Make the cases whose runs have ended."""
    thread = (await it.post("/api/threads", {}, 201))["thread_id"]
    uploaded = await it.client.post(f"/api/threads/{thread}/files", files=[("files", UPLOAD)])
    assert uploaded.status_code == 201, uploaded.text
    await it.settle(await it.begin("finished", script(FILE), thread), "completed")
    await it.settle(await it.begin("followed", script(CODE), thread), "completed")

    outage = script(SEARCH, researcher=[AWAY], reporter=[AWAY], supervisor=[AWAY])
    failed = await it.begin("failed", outage)
    await it.settle(failed, "failed")
    await it.post(f"/api/runs/{failed}/retry")
    await it.settle(failed, "failed")

    for name in ("gaps", *RETRIED):
        await it.settle(await it.begin(name, script(SEARCH, researcher=[NO_DATA])), "completed")

    cancelled = await it.begin("cancelled", script(CODE, coder=[HANG]))
    await it.asked("coder")
    await it.post(f"/api/runs/{cancelled}/cancel", status=200)
    await it.settle(cancelled, "cancelled")

    it.model.reset(script(CODE))
    said = {"messages": [{"role": "user", "content": "Do it. #run=chatted"}]}
    response = await it.client.post("/api/chat/stream", json=said)
    frames = [frame for _, frame in numbered(response.text)]
    run = (await it.client.get("/api/runs?limit=1")).json()["runs"][0]
    it.cases["chatted"] = {"thread_id": run["thread_id"], "run_id": run["run_id"]}
    it.cases["chatted"]["messages"] = frames[-1][1]["messages"]


async def make_waiting(it: Maker) -> None:
    """Make the cases whose runs wait for an answer."""
    for name in ("review", "review_answered"):
        run_id = await it.begin(name, script(CODE), auto_accepted_plan=False)
        await it.settle(run_id, "interrupted")
    for name in ("approval", "approval_answered", "approval_done", "answer_stored"):
        await it.settle(await it.begin(name, script(FILE, file_manager=approved(name))), "interrupted")
    for name in ("question", "question_answered"):
        await it.settle(await it.begin(name, script(ASKS, researcher=[ASK, HANG])), "interrupted")


def approved(name: str) -> list[dict[str, Any]]:
    """Return the replies of a file manager that does not get beyond its one file."""
    return [call("write_file", path=f"{name}.md", content="4\n"), HANG]


async def make_working(it: Maker) -> None:
    """Bring runs to work, and answer, retry and ask what then waits for its turn."""
    it.model.reset(script(FILE, **AT_WORK))
    run_id = it.cases["approval_done"]["run_id"]
    await it.post(f"/api/runs/{run_id}/resume", {"answer": {"type": "approve"}})
    await it.asked("file_manager")  # with the tool's result

    for name in ("asking", "step_answer_stored"):
        run_id = await it.begin(name, script(WAVES, **AT_WORK))
        question = await it.event(run_id, "step_interrupt")
        await it.asked("coder")
        it.cases[name]["interrupt_id"] = question["interrupt_id"]
    await make_killed(it)
    # All slots are taken: what is accepted now leaves no trace but its request.
    for name, given in ANSWERED.items():
        await it.go_on(name, "resume", {"answer": given})
    for name in RETRIED:
        await it.go_on(name, "retry")
    await it.begin("queued", {role: [HANG] for role in script(CODE, supervisor=[])})
    await it.go_on("step_answer_stored", "resume", {"answer": "2024"})
    for status, names in (("running", WORKING), ("queued", QUEUED)):
        for name in names:
            found = (await it.client.get(f"/api/runs/{it.cases[name]['run_id']}")).json()
            assert found["status"] == status, (name, found)


async def make_killed(it: Maker) -> None:
    """Make the run that was given changes of its plan, messages and an answer while its steps work."""
    deciding = [*(reply(json.dumps(one)) for one in DECISIONS), HANG]
    run_id = await it.begin("killed", script(WAVES, supervisor=deciding, **AT_WORK))
    question = await it.event(run_id, "step_interrupt")
    await it.asked("coder")
    await it.post(f"/api/runs/{run_id}/plan", {"action": "skip", "step_id": 3})
    await it.post(f"/api/runs/{run_id}/plan", ADDED_BY_USER)
    sent: list[str] = []
    for number, text in enumerate(MESSAGES, 1):
        sent.append((await it.post(f"/api/runs/{run_id}/messages", {"content": text}))["message_id"])
        if number <= len(DECISIONS):
            await it.event(run_id, "user_message_answer", number)
    await it.asked("supervisor", len(MESSAGES))
    answer = {"answer": "2024", "interrupt_id": question["interrupt_id"]}
    await it.post(f"/api/runs/{run_id}/resume", answer)
    await it.asked("researcher", 2)
    it.cases["killed"] |= {"message_ids": sent, "interrupt_id": question["interrupt_id"]}


async def make(home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the data folder in `home`; return the cases, and the streams of each as its clients saw them."""
    database = home / "data" / "maniple.db"
    with serving(script(CODE)) as model:
        env = environment(model.base_url, home, **QUIET)
        async with Mortal(env, home) as server, server.client() as client:
            it = Maker(client, model, database)
            await make_ended(it)
        env |= APPROVING
        async with Mortal(env, home) as server, server.client() as client:
            it = Maker(client, model, database, it.cases)
            await make_waiting(it)
            streams = {name: await it.frames(one["run_id"]) for name, one in it.cases.items()}
        env |= {"MANIPLE_SERVER__MAX_RUNS": str(len(WORKING))}
        async with Mortal(env, home) as server:
            async with server.client() as client:
                await make_working(Maker(client, model, database, it.cases))
            await server.kill()
    return it.cases, streams


def cut_off(database: Path, case: dict[str, Any]) -> None:
    """Let the database store nothing of a run but its row from now on, as if the kill came then.

    Its events are still stored, because the run would fail without them; `tidy` deletes them.
    """
    with closing(sqlite3.connect(database)) as connection:
        for table, column in CUT_TABLES.items():
            for change in ("INSERT", "UPDATE"):
                connection.execute(
                    f'CREATE TRIGGER "cut {table} {change} {case["run_id"]}" BEFORE {change} ON {table} '
                    f"WHEN NEW.{column} = '{case[column]}' BEGIN SELECT RAISE(IGNORE); END"
                )
        connection.execute("CREATE TABLE IF NOT EXISTS cuts (run_id TEXT, last INTEGER)")
        newest = "SELECT run_id, max(last) FROM events WHERE run_id = ? GROUP BY run_id"
        connection.execute(f"INSERT INTO cuts {newest}", (case["run_id"],))
        connection.commit()


def delete_cut(connection: sqlite3.Connection) -> None:
    """Delete the events that were stored after the cuts, and what made the cuts."""
    connection.execute(
        "DELETE FROM events WHERE first > (SELECT last FROM cuts WHERE cuts.run_id = events.run_id)"
    )
    names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'cut %'").fetchall()
    for (name,) in names:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute("DROP TABLE cuts")
    connection.commit()


def tidy(data: Path) -> None:
    """Merge the logs of all databases into them and give unused pages back."""
    for database in data.rglob("*.db"):
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            delete_cut(connection)
            connection.execute("VACUUM")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def kept_files(data: Path) -> Iterable[Path]:
    files = (file for file in sorted(data.rglob("*")) if file.is_file())
    return [file for file in files if not any(file.match(pattern) for pattern in LEFT_OUT)]


def pack(home: Path, streams: dict[str, Any]) -> bytes:
    """Return the archive: the folder `data`, and `streams.json`."""
    contents = {str(file.relative_to(home)): file.read_bytes() for file in kept_files(home / "data")}
    contents["streams.json"] = json.dumps(streams).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for name, content in contents.items():
            assert str(home).encode() not in content, f"{name} names the folder where it was made"
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            archive.addfile(member, io.BytesIO(content))
            print(f"{len(content):>9} {name}")
    return packed.getvalue()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="maniple-made-") as folder:
        home = Path(folder)
        cases, streams = asyncio.run(make(home))
        tidy(home / "data")
        packed = pack(home, streams)
    assert len(packed) <= MAX_BYTES, f"{len(packed)} bytes are too many for the repository"
    ARCHIVE.write_bytes(packed)
    CASES.write_text(json.dumps(cases, indent=2) + "\n", encoding="utf-8")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    )
    print(f"{len(packed)} bytes from {commit.stdout.strip()}; write the commit into README.md")


if __name__ == "__main__":
    main()
