"""Code inside that speaks in the worker's place: it can lie about itself and do nothing else."""

import asyncio
import os
import tracemalloc

import pytest

from maniple.sandbox import Sandbox
from maniple.sandbox.worker_session import InvalidFrameError, WorkerChannel, WorkerMessage, parse_message
from maniple.workspace import Workspace

pytestmark = pytest.mark.anyio

_SOCKETS = """
import os, socket, stat
def frame(content, length=None):
    return (len(content) if length is None else length).to_bytes(4, "big") + content
def sockets():
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield int(name)
        except OSError:
            pass
def say(content):
    for each in sockets():
        os.write(each, content)
"""
_FORGED = {
    "no_json": 'say(frame(b"hello"))',
    "no_text": 'say(frame(b"\\xff\\xfe"))',
    "an_endless_length": 'say(frame(b"", 2 ** 32 - 1))',
    "a_long_message": 'say(frame(b"x" * 3_000_000))',
    "deep_json": 'say(frame(b"[" * 100_000))',
    "a_list": 'say(frame(b"[1]"))',
    "an_unknown_field": 'say(frame(b\'{"id": "a", "exit_code": 0, "run": "rm"}\'))',
    "another_call": 'say(frame(b\'{"id": "a", "exit_code": 0, "value": "", "images": []}\'))',
    "a_long_number": 'say(frame(b\'{"died": \' + b"9" * 5000 + b"}"))',
    "ready_again": "say(frame(b'{\"ready\": true}'))",
    "an_interruption": 'say(frame(b\'{"id": "a", "interrupted": true}\'))',
}


@pytest.mark.parametrize("name", _FORGED)
async def test_a_forged_reply_ends_its_own_session_and_nothing_else(
    sandbox: Sandbox, workspace: Workspace, name: str
) -> None:
    neighbour = await sandbox.run_python("x = 'well'", key="neighbour", workspace=workspace)
    code = f"{_SOCKETS}\nx = 1\n{_FORGED[name]}\nimport time; time.sleep(15)"
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert completed.exit_code == 137
    assert "so it was stopped" in completed.lost
    assert completed.seconds < 10
    again = await sandbox.run_python("'x' in globals()", key="thread", workspace=workspace)
    assert again.value == "False"
    neighbour = await sandbox.run_python("x", key="neighbour", workspace=workspace)
    assert neighbour.value == "'well'"


async def test_a_reply_forged_for_the_own_call_is_believed_as_any_output_is(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    code = f"""{_SOCKETS}
import sys
frames = sys._getframe()
while "call" not in frames.f_locals or "limit" not in frames.f_locals:
    frames = frames.f_back
mine = frames.f_locals["call"].decode()
say(frame(b'{{"id": "%s", "exit_code": 7, "value": "a lie", "images": []}}' % mine.encode()))
"""
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert (completed.exit_code, completed.value) == (7, "a lie")
    # The worker's own answer comes on top, and nobody had asked.
    again = await sandbox.run_python("1", key="thread", workspace=workspace)
    assert again.value == "1" or "so it was stopped" in again.lost


async def test_a_flood_of_replies_takes_no_memory_of_the_server(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    await sandbox.run_python("1", key="thread", workspace=workspace)
    tracemalloc.start()
    try:
        code = f"{_SOCKETS}\nwhile True: say(b'\\x00\\x01\\x00\\x00' + b'x' * 65_536)"
        completed = await sandbox.run_python(code, key="thread", workspace=workspace)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "so it was stopped" in completed.lost
    assert peak_bytes < 3_000_000


async def test_a_process_reported_dead_twice_during_a_command_is_a_breach(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    twice = "[say(frame(b'{\"died\": 1}')) for _ in range(2)]"
    code = f"{_SOCKETS}\nimport threading\nthreading.Timer(0.3, lambda: {twice}).start()"
    await sandbox.run_python(code, key="thread", workspace=workspace)
    completed = await sandbox.run_bash("sleep 15", key="thread", workspace=workspace)
    assert "so it was stopped" in completed.lost
    assert completed.seconds < 10


async def test_a_worker_that_closes_its_sockets_is_treated_as_dead(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    code = f"{_SOCKETS}\nfor each in list(sockets()): os.close(each)"
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert "processes are gone" in completed.lost
    assert (await sandbox.run_python("1", key="thread", workspace=workspace)).value == "1"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"ready": true, "id": "a"}',
        b'{"id": 1, "exit_code": 0}',
        b'{"id": "a", "exit_code": 256}',
        b'{"id": "a", "exit_code": -1}',
        b'{"id": "a", "exit_code": true}',
        b'{"id": "a", "exit_code": 1.0}',
        b'{"id": "a", "exit_code": NaN}',
        b'{"id": "a", "exit_code": 0, "value": [], "images": []}',
        b'{"id": "a", "exit_code": 0, "value": "", "images": "figures/figure-1.png"}',
        b'{"id": "a", "exit_code": 0, "value": "", "images": ["../../etc/passwd"]}',
        b'{"id": "a", "exit_code": 0, "value": "", "images": ["figures/figure-1.png\\u000a"]}',
        b'{"id": "a", "exit_code": 0, "value": "", "images": [1]}',
        b'{"died": "9"}',
        b'{"id": "a", "exit_code": 0, "value": "", "images": '
        + str(["figures/figure-1.png"] * 11).replace("'", '"').encode()
        + b"}",
    ],
)
async def test_a_message_that_no_worker_sends_is_rejected(content: bytes) -> None:
    with pytest.raises(InvalidFrameError):
        parse_message(content)


async def test_halves_of_characters_do_not_get_through() -> None:
    said = parse_message(b'{"id": "a", "exit_code": 0, "value": "\\ud800", "images": []}')
    assert said.value == "?"


async def test_any_bytes_in_any_pieces_are_frames_or_a_breach() -> None:
    heard: list[WorkerMessage] = []
    broken: list[str] = []
    channel = WorkerChannel(1000, heard.append, broken.append)
    good = b'{"id": "a", "exit_code": 3}'
    stream = (len(good).to_bytes(4, "big") + good) * 3 + os.urandom(4) + bytes(5000)
    for at in range(0, len(stream), 7):
        channel.data_received(stream[at : at + 7])
    assert [said.exit_code for said in heard] == [3, 3, 3]
    assert len(broken) == 1
    await asyncio.sleep(0)
