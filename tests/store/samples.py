"""Records and children for the tests of the store."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from maniple.store import Artifact, EventRecord, RunRecord, Store, Thread
from maniple.store.artifact_files import ArtifactFiles

CHILD = Path(__file__).with_name("child.py")


def a_thread(owner: str = "", at: float | None = None, title: str = "A question") -> Thread:
    now = time.time() if at is None else at
    return Thread(str(uuid4()), owner, title, now, now)


def a_run(thread: Thread, process: str = "p", at: float | None = None, **fields) -> RunRecord:
    now = time.time() if at is None else at
    named = {"kind": "server", "status": "queued", "request": "{}"} | fields
    return RunRecord(str(uuid4()), thread.thread_id, thread.owner, process=process, created_at=now, **named)


def content_path(store: Store, artifact: Artifact) -> Path:
    """Return the file that holds an artifact's content."""
    contents = store.artifacts.contents
    assert isinstance(contents, ArtifactFiles)
    return contents.directory / artifact.artifact_id


def some_events(first: int, last: int) -> list[EventRecord]:
    return [EventRecord(n, "message", json.dumps({"delta": f"word {n}"})) for n in range(first, last + 1)]


WITHOUT_BRANCHES = (
    "DROP TRIGGER report_run; DROP TABLE batch_totals; DROP TABLE batch_items; DROP TABLE batches;"
    "DROP TABLE webhook_deliveries; DROP TABLE webhooks; DROP TABLE schedule_ticks; DROP TABLE schedules;"
    "DROP TABLE run_words; DROP TABLE run_trigrams; DROP TABLE run_texts;"
    "DROP INDEX threads_of_root; DROP INDEX conversations_of_owner;"
    "ALTER TABLE threads DROP COLUMN parent_id; ALTER TABLE threads DROP COLUMN branched_run;"
    "ALTER TABLE threads DROP COLUMN root_id; ALTER TABLE threads DROP COLUMN note;"
)
"""Takes schema 16 back."""


async def stored_run(store: Store, **fields) -> RunRecord:
    thread = await store.threads.create(a_thread())
    return await store.runs.add(a_run(thread, store.process, **fields))


def command(*words: object, before: tuple[str, ...] = ()) -> list[str]:
    return [*before, sys.executable, str(CHILD), *(str(word) for word in words)]


@contextmanager
def child(*words: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs one of the scenes of `child.py`; killed at the end if it still runs."""
    process = subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=CHILD.parents[2]
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)
