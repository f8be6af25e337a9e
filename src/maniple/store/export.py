"""Copies of a store: JSON lines for other programs, and backups that can replace a data directory."""

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, closing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from maniple.errors import FileError
from maniple.evidence import Evidence
from maniple.store.artifact_contents import ArtifactContents, open_content
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.configured import ARTIFACTS, DATABASE
from maniple.store.error_translation import translate_errors
from maniple.store.executors import run_in_thread
from maniple.store.protocols import Store, read_event_pages
from maniple.store.records import RunRecord, Thread

_PAGE_SIZE = 500
_SPOOLED_BYTES = 8 * 1024 * 1024
"""A larger content is copied by way of a temporary file."""


async def export_records(store: Store, thread_id: str | None = None) -> AsyncIterator[str]:
    """Yield one JSON object per line, for one thread or for all: its kind (`record`), then its fields.

    The kinds are thread, run, input, event, tool_call, source (without its text), unread_page and
    artifact (without its content); each follows the record that it belongs to. API keys and checkpoints are
    not exported.
    Raises `LookupError` for an unknown thread.
    """
    if thread_id is not None:
        thread = await store.threads.get(thread_id, None)
        if thread is None:
            raise LookupError(f"There is no thread {thread_id}.")
        async for line in _export_thread(store, thread):
            yield line
        return
    before: float | None = None
    while page := await store.threads.list(None, _PAGE_SIZE, before):
        branches = await store.threads.list_branches([one.thread_id for one in page])
        for thread in page:
            for one in (thread, *branches[thread.thread_id]):
                async for line in _export_thread(store, one):
                    yield line
        before = page[-1].created_at


async def _export_thread(store: Store, thread: Thread) -> AsyncIterator[str]:
    yield _line("thread", asdict(thread))
    before: float | None = None
    while page := await store.runs.list_by_thread(thread.thread_id, _PAGE_SIZE, before):
        for run in page:
            if run.thread_id != thread.thread_id:
                return  # a branch begins with runs of another thread, which has them
            async for line in _export_run(store, run):
                yield line
        before = page[-1].created_at


async def _export_run(store: Store, run: RunRecord) -> AsyncIterator[str]:
    yield _line("run", {**asdict(run), "request": _parse(run.request)})
    for sent in await store.inputs.list_by_run(run.run_id):
        parsed = {"content": _parse(sent.content), "reply": _parse(sent.reply)}
        yield _line("input", {"run_id": run.run_id, **asdict(sent), **parsed})
    async for page in read_event_pages(store.events, run.run_id):
        for event in page:
            fields = {"run_id": run.run_id, "number": event.number, "type": event.type, "at": event.at}
            yield _line("event", {**fields, "data": _parse(event.marked_data)})
    for call in await store.ledger.list_by_run(run.run_id):
        parsed = {"arguments": _parse(call.arguments), "result": _parse(call.result)}
        yield _line("tool_call", {**asdict(call), **parsed})
    async for line in _export_evidence(store.evidence(run.run_id), run.run_id):
        yield line
    for artifact in await store.artifacts.list_by_run(run.run_id):
        yield _line("artifact", asdict(artifact))


async def _export_evidence(evidence: Evidence, run_id: str) -> AsyncIterator[str]:
    for source in await evidence.sources():
        yield _line("source", {"run_id": run_id, **asdict(source)})
    for page in await evidence.unread():
        yield _line("unread_page", {"run_id": run_id, **asdict(page)})
    for finding in await evidence.findings():
        yield _line("finding", {"run_id": run_id, **asdict(finding)})


def _parse(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _line(record: str, fields: dict[str, Any]) -> str:
    # Not "kind": a run has a field of this name.
    return json.dumps({"record": record, **fields}, ensure_ascii=False)


async def back_up(file: Path, contents: ArtifactContents, folder: Path) -> None:
    """Copy a database and its artifacts into a new folder, which can serve as a `data_dir`.

    The copy shows the database at one moment, also while other processes write. Raises `FileExistsError`, or
    `StoreError`; then the new folder does not exist.
    """
    await run_in_thread(lambda: _make_folder(folder))
    try:
        known = await run_in_thread(lambda: _copy_rows(file, folder / DATABASE))
        # After the rows: the content of an artifact is written before its row.
        await copy_contents(contents, ArtifactFiles(folder / ARTIFACTS), known)
    except BaseException:  # an incomplete copy is never left
        await run_in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))
        raise


async def copy_contents(
    source: ArtifactContents, target: ArtifactContents, artifacts: Iterable[tuple[str, int]]
) -> None:
    """Copy the contents of artifacts (id, size), but for those whose thread was deleted meanwhile.

    Raises `StoreError`.
    """
    for artifact_id, size in artifacts:
        with suppress(FileError), SpooledTemporaryFile(_SPOOLED_BYTES) as file:
            content = await open_content(source, artifact_id, size)
            async with aclosing(content.stream()) as pieces:
                async for piece in pieces:
                    await run_in_thread(partial(file.write, piece))
            file.seek(0)
            await target.write(artifact_id, cast("BinaryIO", file))


def _make_folder(folder: Path) -> None:
    if folder.exists():
        raise FileExistsError(folder)
    with translate_errors(folder):
        folder.mkdir(mode=0o700, parents=True)
        (folder / ARTIFACTS).mkdir(mode=0o700)


def _copy_rows(file: Path, copy: Path) -> list[tuple[str, int]]:
    """Copy the database; return its artifacts: their ids and sizes in bytes."""
    from maniple.store.sqlite.database import connect

    with translate_errors(copy):
        copy.touch(0o600)
        with closing(connect(file)) as connection:
            # SQLite's backup API would start again whenever another process writes.
            connection.execute("VACUUM INTO ?", [str(copy)])
        with closing(sqlite3.connect(copy)) as copied:
            return copied.execute("SELECT artifact_id, size FROM artifacts").fetchall()
