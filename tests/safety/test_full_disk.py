"""A disk that fills during a run: the run waits for room, and one that waits too long ends with an error."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.environment import environment
from tests.grammar import Client
from tests.openai_server import SIMPLE, OpenAIServer, serving, words
from tests.safety.logged_server import open_server
from tests.safety.test_faults import QUESTION, REPORT, frames_in, last_words, of

MEGABYTES = 8
BALLAST = "ballast"
WAITING = "waiting_for: store"
PATIENCE_SECONDS = 120


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """Mount a small file system in a name space of its own.

    Yields the words before a command that is to see it, and the way to it from outside.
    """
    private = [] if os.geteuid() == 0 else ["--map-root-user"]
    mounting = f"mount -t tmpfs -o size={MEGABYTES}m tmpfs {folder}; echo mounted; exec cat"
    command = ["unshare", "--mount", *private, "sh", "-ec", mounting]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "mounted\n"
        entering = ["--user", "--preserve-credentials"] if private else []
        try:
            yield (
                ["nsenter", "--target", str(holder.pid), "--mount", *entering],
                Path(f"/proc/{holder.pid}/root{folder}"),
            )
        finally:
            holder.stdin.close()


def fill(disk: Path) -> None:
    """Leave no free block."""
    with (disk / BALLAST).open("wb", buffering=0) as file:
        try:
            for _ in range(MEGABYTES * 256):
                file.write(bytes(4096))
        except OSError:
            return
    raise AssertionError("the disk never became full")


@contextmanager
def filling_service(
    tmp_path: Path, **more: str
) -> Iterator[tuple[OpenAIServer, dict[str, str], list[str], Path]]:
    """Yield a model that writes slowly, and how to start a service whose data are on a small disk."""
    slow = {"chunks": words(1_000), "delay_seconds": 0.02}
    data = tmp_path / "disk"
    data.mkdir()
    with (
        serving({**SIMPLE, "by_history": True, "reporter": [slow]}) as model,
        small_disk(data) as (inside, disk),
    ):
        yield model, environment(model.base_url, tmp_path, MANIPLE_DATA_DIR=str(data), **more), inside, disk


@pytest.mark.slow
def test_a_run_waits_for_room_on_a_disk_that_fills_and_goes_on_in_the_same_stream(tmp_path):
    with filling_service(tmp_path) as (_, env, inside, disk):
        with open_server(env, tmp_path, before=inside) as server:
            heard = _heard(server.url, disk, is_freed=True)
    assert WAITING in heard
    told = frames_in(heard)
    assert of(told, "error") == []
    assert Client().read(told).status == "completed"
    assert last_words(told) == "".join(words(1_000)).strip()


@pytest.mark.slow
def test_a_disk_that_stays_full_is_reported_and_the_run_goes_on_after_a_restart(tmp_path):
    with filling_service(tmp_path, MANIPLE_RUNS__OUTAGE_SECONDS="5") as (model, env, inside, disk):
        with open_server(env, tmp_path, before=inside) as server:
            heard = _heard(server.url, disk, is_freed=False)
            told = frames_in(heard)
            (disk / BALLAST).unlink()
        model.reset({**SIMPLE, "by_history": True})
        with open_server(env, tmp_path, before=inside) as server:
            run_id = of(told, "run")[0]["run_id"]
            with httpx.Client(base_url=server.url, timeout=60) as client:
                whole = client.get(f"/api/runs/{run_id}/events").text
                run = client.get(f"/api/runs/{run_id}").json()
    assert [name for name, _ in told[-3:]] == ["error", "end_of_workflow", "final_session_state"]
    assert of(told, "error")[0]["code"] == "store_full"
    assert of(told, "error")[0]["retryable"]
    # What was told with a number was kept, and is told again as it was.
    assert whole.startswith(heard[: heard.index("\n\nevent: ")])
    assert Client().read(frames_in(whole)).status == "completed"
    assert run["status"] == "completed"
    assert last_words(frames_in(whole)) == REPORT


def _heard(url: str, disk: Path, *, is_freed: bool) -> str:
    """Ask; when the report has begun, fill the disk, and free it when the run waits. Return all that came."""
    heard, is_filled, end = "", False, time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(timeout=60) as client:
        with client.stream("POST", f"{url}/api/chat/stream", json=QUESTION) as response:
            for text in response.iter_text():
                heard += text
                if not is_filled and re.search(r"\bw[c-j][a-j] ", heard):  # pieces are joined
                    fill(disk)
                    is_filled = True
                if is_freed and is_filled and WAITING in heard:
                    (disk / BALLAST).unlink(missing_ok=True)
                assert time.monotonic() < end, heard[-500:]
    assert is_filled
    return heard
