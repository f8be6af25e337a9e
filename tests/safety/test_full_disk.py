"""A disk that fills during a run: the client gets an error; the run continues when there is space."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.environment import environment
from tests.grammar import Client
from tests.openai_server import SIMPLE, serving, words
from tests.safety.logged_server import open_server
from tests.safety.test_faults import QUESTION, REPORT, frames_in, last_words, of

MEGABYTES = 8


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


def fill(disk: Path) -> Path:
    """Leave no free block; return what takes them."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            for _ in range(MEGABYTES * 256):
                file.write(bytes(4096))
        except OSError:
            return ballast
    raise AssertionError("the disk never became full")


@pytest.mark.slow
def test_a_disk_that_fills_in_mid_run_is_reported_and_the_run_goes_on_after_a_restart(tmp_path):
    slow = {"chunks": words(1_000), "delay_seconds": 0.02}
    data = tmp_path / "disk"
    data.mkdir()
    with (
        serving({**SIMPLE, "by_history": True, "reporter": [slow]}) as model,
        small_disk(data) as (inside, disk),
    ):
        env = environment(model.base_url, tmp_path, MANIPLE_DATA_DIR=str(data))
        with open_server(env, tmp_path, before=inside) as server:
            heard, ballast = _heard_until_full(server.url, disk)
            told = frames_in(heard)
            ballast.unlink()
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


def _heard_until_full(url: str, disk: Path) -> tuple[str, Path]:
    """Ask; when the report has begun, fill the disk. Returns all received events."""
    heard, ballast = "", None
    with httpx.Client(timeout=60) as client:
        with client.stream("POST", f"{url}/api/chat/stream", json=QUESTION) as response:
            for text in response.iter_text():
                heard += text
                if ballast is None and re.search(r"\bw[c-j][a-j] ", heard):  # pieces are joined
                    ballast = fill(disk)
    assert ballast is not None
    return heard, ballast
