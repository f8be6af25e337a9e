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

import pytest

from maniple.reading import isolated
from maniple.reading.isolated import Nursery
from maniple.reading.result import Reading, Unreadable
from tests.reading.files import pdf

pytestmark = pytest.mark.anyio

URL = "http://site.test/a"
# Takes seconds, which no test waits for.
LONG = b"<p>The <b>river</b>, which was <a href=/x>wide</a>, ran past.</p>" * 60_000
PROGRAM = f"""
import asyncio, sys
from maniple.reading.isolated import Nursery
nursery = Nursery()
asyncio.run(nursery.read("text", b"x", "{URL}", None))
print("read", flush=True)
sys.argv[1:] or sys.stdin.read()
if sys.argv[1:]:
    asyncio.run(nursery.read("html", {LONG[: len(LONG) // 60_000]!r} * 60_000, "{URL}", None))
"""


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    gc.collect()  # the nurseries of other tests, which nobody holds any more
    with closing(Nursery()) as opened:
        yield opened


async def test_no_process_is_started_before_the_first_document(nursery: Nursery) -> None:
    assert nurseries() == []
    await nursery.read("text", b"x", URL, None)
    assert len(nurseries()) == 1


async def test_each_document_has_a_process_of_its_own_from_one_nursery(nursery: Nursery) -> None:
    readings = [long_reading(nursery) for _ in range(2)]
    assert len(await some(readers, 2)) == 2
    assert len(nurseries()) == 1
    for reading in readings:
        await cancel(reading)
    assert readers() == []


async def test_many_documents_at_once_are_each_answered_with_their_own(nursery: Nursery) -> None:
    pages = await asyncio.gather(*(nursery.read("pdf", pdf(f"The {n}th arch"), URL, None) for n in range(8)))
    assert [page.markdown for page in pages] == [f"## Page 1\n\nThe {n}th arch" for n in range(8)]
    assert readers() == []


async def test_what_is_wrong_with_a_document_is_said(nursery: Nursery) -> None:
    with pytest.raises(Unreadable, match="is a damaged PDF"):
        await nursery.read("pdf", b"%PDF-1.7 but no more", URL, None)


async def test_a_reader_that_is_killed_costs_its_document_alone(nursery: Nursery) -> None:
    lost = long_reading(nursery)
    [reader] = await some(readers)
    other = asyncio.create_task(nursery.read("pdf", pdf("An arch"), URL, None))
    os.kill(reader, signal.SIGKILL)
    with pytest.raises(Unreadable, match="may be damaged"):
        await lost
    assert (await other).markdown.endswith("An arch")
    assert len(nurseries()) == 1


async def test_a_document_that_takes_too_much_memory_is_given_up(nursery: Nursery) -> None:
    with pytest.raises(Unreadable):
        await nursery.read("text", b"x" * 500_000_000, URL, "utf-16")
    assert (await nursery.read("text", b"x", URL, None)).markdown == "x"


async def test_after_the_nursery_was_killed_the_next_document_starts_another(nursery: Nursery) -> None:
    await nursery.read("text", b"x", URL, None)
    [killed] = nurseries()
    os.kill(killed, signal.SIGKILL)
    assert await gone(killed)
    assert (await nursery.read("text", b"y", URL, None)).markdown == "y"
    [another] = nurseries()
    assert another != killed


async def test_a_nursery_that_is_killed_takes_its_readers_with_it(nursery: Nursery) -> None:
    reading = long_reading(nursery)
    [reader] = await some(readers)
    os.kill(nurseries()[0], signal.SIGKILL)
    with pytest.raises(Unreadable, match="may be damaged"):
        await reading
    assert await gone(reader)


async def test_a_reader_that_takes_too_long_is_ended(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nursery.read("text", b"x", URL, None)
    monkeypatch.setattr(isolated, "_TIMEOUT_SECONDS", 0.05)
    with pytest.raises(Unreadable, match="takes too long"):
        await nursery.read("html", LONG, URL, None)
    assert readers() == []


async def test_a_reading_that_is_cancelled_leaves_no_process(nursery: Nursery) -> None:
    reading = long_reading(nursery)
    await some(readers)
    await cancel(reading)
    assert readers() == []


async def test_closing_ends_the_process_and_its_readers_and_a_later_document_starts_another(
    nursery: Nursery,
) -> None:
    reading = long_reading(nursery)
    [reader] = await some(readers)
    nursery.close()
    assert nurseries() == []
    with pytest.raises(Unreadable):
        await reading
    assert await gone(reader)
    assert (await nursery.read("text", b"x", URL, None)).markdown == "x"


async def test_a_nursery_that_nobody_holds_any_more_ends() -> None:
    await Nursery().read("text", b"x", URL, None)
    assert nurseries() == []


async def test_nothing_is_left_of_a_program_that_ends_without_closing() -> None:
    program = await started()
    left = nurseries(program.pid)
    await program.communicate(b"")
    assert program.returncode == 0
    assert len(left) == 1
    assert await gone(*left)


async def test_nothing_is_left_of_a_program_that_is_killed() -> None:
    program = await started("and read on")
    left = await some(lambda: [*nurseries(program.pid), *readers(program.pid)], 2)
    program.kill()
    await program.communicate(b"")
    assert len(left) == 2
    assert await gone(*left)


async def test_an_idle_nursery_takes_less_than_60_megabytes(nursery: Nursery) -> None:
    await nursery.read("pdf", pdf("An arch"), URL, None)
    assert workers()[nurseries()[0]][1] < 60_000


def long_reading(nursery: Nursery) -> asyncio.Task[Reading]:
    return asyncio.create_task(nursery.read("html", LONG, URL, None))


async def cancel(reading: asyncio.Task[Reading]) -> None:
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


def nurseries(of: int | None = None) -> list[int]:
    """The processes that the process `of`, else this one, has started to read."""
    parent = of or os.getpid()
    return [pid for pid, (above, _) in workers().items() if above == parent]


def readers(of: int | None = None) -> list[int]:
    """The readers of those."""
    found = workers()
    return [
        pid for pid, (above, _) in found.items() if above in found and found[above][0] == (of or os.getpid())
    ]


def workers() -> dict[int, tuple[int, int]]:
    """The parent and the kilobytes of every such process on this machine."""
    command = ["ps", "-A", "-o", "pid=,ppid=,rss=,args="]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    split = [line.split(maxsplit=3) for line in lines if "maniple.reading.worker" in line]
    return {int(pid): (int(above), int(kilobytes)) for pid, above, kilobytes, _ in split}


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
