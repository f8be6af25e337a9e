"""examples/read_stream.py against a real server: the whole run, a lost connection, and failures."""

import re
import socket
from pathlib import Path

import pytest

from tests.examples.programs import cut_once, run_example
from tests.openai_server import SIMPLE, OpenAIServer
from tests.serving import ServerProcess, environment

REFUSED = {"status": 400, "error": "no"}


def read(url: str, folder: Path, question: str = "1+3=?", status: int = 0) -> str:
    env = environment("", folder)
    return run_example("read_stream.py", question, url, folder=folder, env=env, status=status)


def test_a_run_is_shown_from_plan_to_status(server: ServerProcess, model: OpenAIServer, tmp_path: Path):
    output = read(server.url, tmp_path)
    assert output.count("The answer is **4**.") == 1
    assert re.findall(r"^(\w+) +\w+: Compute$", output, re.M)[-1] == "completed"
    assert output.splitlines()[-1].startswith("Status: completed")


@pytest.mark.parametrize("size", [1_000, 4_000])
def test_a_lost_connection_loses_and_repeats_nothing(
    size: int, server: ServerProcess, model: OpenAIServer, tmp_path: Path
):
    whole = read(server.url, tmp_path)
    model.reset(SIMPLE)
    with cut_once(server.url, size) as (url, heads):
        assert read(url, tmp_path) == whole
    first, second = heads
    assert first.startswith(b"POST /api/chat/stream")
    assert int(re.search(rb"last-event-id: (\d+)", second, re.I)[1]) > 1  # type: ignore[index]


def test_characters_that_some_readers_take_for_line_ends_stay(
    server: ServerProcess, model: OpenAIServer, tmp_path: Path
):
    model.reset({**SIMPLE, "reporter": [{"chunks": ["one\u2028two\x85three"]}]})
    assert "one\u2028two\x85three" in read(server.url, tmp_path)


def test_a_failed_run_is_an_exit_status(server: ServerProcess, model: OpenAIServer, tmp_path: Path):
    model.reset({"coordinator": [REFUSED], "planner": [REFUSED], "other": [REFUSED]})
    assert "Status: failed" in read(server.url, tmp_path, status=1)


def test_a_request_that_is_refused_is_not_repeated(server: ServerProcess, tmp_path: Path):
    output = read(server.url, tmp_path, question="", status=1)
    assert output.strip().startswith("422")


def test_a_server_that_is_not_there_is_an_exit_status(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert read(url, tmp_path, status=1).strip()
