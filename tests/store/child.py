"""Scenarios that need a separate process: `python child.py SCENE FILE`; each prints what happens."""

import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from maniple.errors import StoreError
from maniple.store import open_store
from tests.store.samples import some_events, stored_run


def tell(**what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")  # in one piece, also if the process is killed
    sys.stdout.flush()


async def serve(path: Path) -> None:
    """Have the file open as a server, with a run under way, until standard input ends."""
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        run = await stored_run(store, status="running", started_at=1.0)
        tell(process=store.process, run_id=run.run_id)
        await asyncio.to_thread(sys.stdin.read)


async def drive(path: Path) -> None:
    """Drive a run in the PostgreSQL database that the file names, with an event for each line of input."""
    from maniple.store.artifact_files import ArtifactFiles
    from maniple.store.postgres.store import open_postgres

    url = await asyncio.to_thread(path.read_text)
    async with open_postgres(url, ArtifactFiles(path.parent / "artifacts"), server=True, pool=2) as store:
        run = await stored_run(store, status="running", started_at=1.0)
        tell(process=store.process, run_id=run.run_id)
        number = 0
        while await asyncio.to_thread(sys.stdin.readline):
            number += 1
            try:
                await store.events.append([(run.run_id, some_events(number, number))])
                tell(number=number)
            except StoreError as error:
                tell(code=error.code)


async def write(path: Path) -> None:
    """Append for ever, telling the newest number that was acknowledged."""
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        run = await stored_run(store, status="running")
        tell(run_id=run.run_id, pid=os.getpid())
        number = 0
        while True:
            await store.events.append([(run.run_id, some_events(number + 1, number + 7))])
            number += 7
            tell(number=number)


def writers(path: Path) -> None:
    """For each line of standard input, a process that writes until it is killed."""
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            asyncio.run(write(path))
        os.waitpid(pid, 0)
        tell(ended=pid)


async def fill(path: Path) -> None:
    """Write until the disk is full, make room by deleting `ballast`, and go on."""
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        run = await stored_run(store)
        number = await _until_full(store, run.run_id)
        try:
            await store.artifacts.add(run, "big", "text/plain", bytes(4_000_000))
        except StoreError as error:
            tell(artifact=error.code, drafts=len(list((path.parent / "artifacts").glob("[!.]*"))))
        tell(kept=len(await store.events.read(run.run_id, 0, number + 100)) == number)
        try:
            await store.probe()
        except StoreError as error:
            tell(tried=error.code)
        (path.parent / "ballast").unlink()
        await store.probe()
        await store.events.append([(run.run_id, some_events(number + 1, number + 3))])
        await store.checkpointer.aput(_place(), _checkpoint(), {}, {})
        tell(after=(await store.events.last(run.run_id)).number - number, problems=await store.check())


async def _until_full(store, run_id: str) -> int:
    number = 0
    for _ in range(5_000):
        try:
            await store.events.append([(run_id, some_events(number + 1, number + 100))])
        except StoreError as error:
            tell(code=error.code, message=str(error))
            try:
                await store.checkpointer.aput(_place(), _checkpoint(), {}, {})
            except StoreError as again:
                tell(checkpoint=again.code)
            return number
        number += 100
    raise AssertionError("the disk never became full")


def _place() -> dict:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def _checkpoint() -> dict:
    from langgraph.checkpoint.base import empty_checkpoint

    return {**empty_checkpoint(), "channel_values": {"text": "x" * 100_000}}


async def attempt(path: Path) -> None:
    """Open the file and close it."""
    try:
        async with open_store(path, path.parent / "artifacts", server=False):
            tell(code="opened")
    except StoreError as error:
        tell(code=error.code, message=str(error))


if __name__ == "__main__":
    scenes = {scene.__name__: scene for scene in (serve, drive, write, writers, fill, attempt)}
    going = scenes[sys.argv[1]](Path(sys.argv[2]))
    if going is not None:
        asyncio.run(going)
