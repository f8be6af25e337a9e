import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import maniple.reading.fork_server
from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.fork_server import ForkServer
from tests.reading.files import pdf

pytestmark = pytest.mark.anyio

URL = "http://site.test/a"
# Takes seconds, which no test waits for.
LONG = b"<p>The <b>river</b>, which was <a href=/x>wide</a>, ran past.</p>" * 60_000
PROGRAM = f"""
import asyncio, sys
from maniple.reading.fork_server import ForkServer
fork_server = ForkServer()
asyncio.run(fork_server.read("text", b"x", "{URL}", None))
print("read", flush=True)
sys.argv[1:] or sys.stdin.read()
if sys.argv[1:]:
    asyncio.run(fork_server.read("html", {LONG[: len(LONG) // 60_000]!r} * 60_000, "{URL}", None))
"""


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    gc.collect()  # the fork_servers of other tests, which nobody holds any more
    with closing(ForkServer()) as opened:
        yield opened


async def test_no_process_is_started_before_the_first_document(fork_server: ForkServer) -> None:
    assert fork_servers() == []
    await fork_server.read("text", b"x", URL, None)
    assert len(fork_servers()) == 1


async def test_each_document_has_a_process_of_its_own_from_one_fork_server(fork_server: ForkServer) -> None:
    readings = [long_reading(fork_server) for _ in range(2)]
    assert len(await some(readers, 2)) == 2
    assert len(fork_servers()) == 1
    for reading in readings:
        await cancel(reading)
    assert readers() == []


async def test_many_documents_at_once_are_each_answered_with_their_own(fork_server: ForkServer) -> None:
    pages = await asyncio.gather(
        *(fork_server.read("pdf", pdf(f"The {n}th arch"), URL, None) for n in range(8))
    )
    assert [page.markdown for page in pages] == [f"## Page 1\n\nThe {n}th arch" for n in range(8)]
    assert readers() == []


async def test_an_unreadable_document_is_reported_with_the_reason(fork_server: ForkServer) -> None:
    with pytest.raises(UnreadableDocument, match="is a damaged PDF"):
        await fork_server.read("pdf", b"%PDF-1.7 but no more", URL, None)


async def test_a_reader_that_is_killed_costs_its_document_alone(fork_server: ForkServer) -> None:
    lost = long_reading(fork_server)
    [reader] = await some(readers)
    other = asyncio.create_task(fork_server.read("pdf", pdf("An arch"), URL, None))
    os.kill(reader, signal.SIGKILL)
    with pytest.raises(UnreadableDocument, match="may be damaged"):
        await lost
    assert (await other).markdown.endswith("An arch")
    assert len(fork_servers()) == 1


@pytest.mark.slow
async def test_a_document_that_takes_too_much_memory_is_given_up(fork_server: ForkServer) -> None:
    with pytest.raises(UnreadableDocument):
        await fork_server.read("text", b"x" * 500_000_000, URL, "utf-16")
    assert (await fork_server.read("text", b"x", URL, None)).markdown == "x"


async def test_the_next_document_starts_another_fork_server_when_one_was_killed(
    fork_server: ForkServer,
) -> None:
    await fork_server.read("text", b"x", URL, None)
    [killed] = fork_servers()
    os.kill(killed, signal.SIGKILL)
    assert await gone(killed)
    assert (await fork_server.read("text", b"y", URL, None)).markdown == "y"
    [another] = fork_servers()
    assert another != killed


async def test_a_fork_server_that_is_killed_takes_its_readers_with_it(fork_server: ForkServer) -> None:
    reading = long_reading(fork_server)
    [reader] = await some(readers)
    os.kill(fork_servers()[0], signal.SIGKILL)
    with pytest.raises(UnreadableDocument, match="may be damaged"):
        await reading
    assert await gone(reader)


async def test_a_reader_that_takes_too_long_is_ended(
    fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fork_server.read("text", b"x", URL, None)
    monkeypatch.setattr(maniple.reading.fork_server, "_TIMEOUT_SECONDS", 0.05)
    with pytest.raises(UnreadableDocument, match="takes too long"):
        await fork_server.read("html", LONG, URL, None)
    assert readers() == []


async def test_a_reading_that_is_cancelled_leaves_no_process(fork_server: ForkServer) -> None:
    reading = long_reading(fork_server)
    await some(readers)
    await cancel(reading)
    assert readers() == []


async def test_closing_ends_the_process_and_its_readers_and_a_later_document_starts_another(
    fork_server: ForkServer,
) -> None:
    reading = long_reading(fork_server)
    [reader] = await some(readers)
    fork_server.close()
    assert fork_servers() == []
    with pytest.raises(UnreadableDocument):
        await reading
    assert await gone(reader)
    assert (await fork_server.read("text", b"x", URL, None)).markdown == "x"


@pytest.mark.slow
async def test_a_fork_server_that_is_no_longer_used_ends() -> None:
    await ForkServer().read("text", b"x", URL, None)
    assert fork_servers() == []


@pytest.mark.slow
async def test_nothing_is_left_of_a_program_that_ends_without_closing() -> None:
    program = await started()
    left = fork_servers(program.pid)
    await program.communicate(b"")
    assert program.returncode == 0
    assert len(left) == 1
    assert await gone(*left)


async def test_nothing_is_left_of_a_program_that_is_killed() -> None:
    program = await started("and read on")
    left = await some(lambda: [*fork_servers(program.pid), *readers(program.pid)], 2)
    program.kill()
    await program.communicate(b"")
    assert len(left) == 2
    assert await gone(*left)


async def test_an_idle_fork_server_takes_less_than_45_megabytes_of_its_own(fork_server: ForkServer) -> None:
    await fork_server.read("pdf", pdf("An arch"), URL, None)
    assert own_kilobytes(*fork_servers()) < 45_000


def long_reading(fork_server: ForkServer) -> asyncio.Task[MarkdownDocument]:
    return asyncio.create_task(fork_server.read("html", LONG, URL, None))


async def cancel(reading: asyncio.Task[MarkdownDocument]) -> None:
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def started(*arguments: str) -> Process:
    """The program, after its first document."""
    command = (sys.executable, "-c", PROGRAM, *arguments)
    program = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert program.stdout is not None
    assert await program.stdout.readline() == b"read\n"
    return program


def fork_servers(of: int | None = None) -> list[int]:
    """The processes that the process `of`, else this one, has started to read."""
    parent = of or os.getpid()
    return [pid for pid, above in workers().items() if above == parent]


def readers(of: int | None = None) -> list[int]:
    """The readers of those."""
    found = workers()
    return [pid for pid, above in found.items() if above in found and found[above] == (of or os.getpid())]


def own_kilobytes(process: int) -> int:
    """What no file backs: how many pages of files count as present depends on the machine."""
    return int(Path(f"/proc/{process}/status").read_text().split("RssAnon:")[1].split()[0])


def workers() -> dict[int, int]:
    """The parent of every such process on this machine."""
    command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    split = [line.split(maxsplit=2) for line in lines if "maniple.reading.fork_server_process" in line]
    return {int(pid): int(above) for pid, above, _ in split}


async def some(listed: Callable[[], list[int]], count: int = 1) -> list[int]:
    """What is listed, as soon as it is so many, or after 20 seconds."""
    deadline = time.monotonic() + 20
    while len(found := await asyncio.to_thread(listed)) < count and time.monotonic() < deadline:
        pass
    return found


async def gone(*processes: int) -> bool:
    """Whether they have ended; it may take the system a moment."""
    await some(lambda: [] if set(processes) & workers().keys() else [0])
    return not set(processes) & workers().keys()
