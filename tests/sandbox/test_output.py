import tracemalloc

import pytest

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.sandbox.processes import TruncatedBuffer
from maniple.workspace import Workspace

pytestmark = pytest.mark.anyio


async def test_long_output_keeps_its_head_and_tail_and_names_the_rest(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    code = "print('first')\nprint('x' * 1_000_000)\nprint('last')"
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert completed.stdout.startswith("first\nxxx")
    assert completed.stdout.endswith("xxx\nlast\n")
    assert f"\n[… {6 + 1_000_001 + 5 - 4096} bytes cut …]\n" in completed.stdout


async def test_an_endless_writer_is_stopped_with_little_to_show_for_it(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    tracemalloc.start()
    try:
        completed = await hasty_sandbox.run_bash("yes | tee /dev/stderr", key="thread", workspace=workspace)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert completed.timed_out
    assert len(completed.text()) < 2 * 65_536 + 300
    assert peak_bytes < 3_000_000


async def test_memory_for_output_is_bounded_by_the_limit() -> None:
    capture = TruncatedBuffer(limit_bytes=4096)
    chunk = b"y" * 65_536
    tracemalloc.start()
    try:
        for _ in range(2_000):
            capture.data_received(chunk)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 500_000
    assert f"{2_000 * 65_536 - 4096} bytes cut" in capture.text()


async def test_a_character_between_head_and_tail_survives() -> None:
    capture = TruncatedBuffer(limit_bytes=8)
    capture.data_received("abc€de".encode())
    assert capture.text() == "abc€de"


@pytest.mark.parametrize(
    ("completed", "text"),
    [
        (ExecutionResult(0, "", "", 0.1), "[no output; print what you want to see]"),
        (ExecutionResult(0, "a\n", "b\n", 0.1), "a\n[stderr]\nb"),
        (ExecutionResult(1, "", "", 0.1), "[exit code 1]"),
        (ExecutionResult(0, "a", "", 0.4), "a"),
        (ExecutionResult(0, "a", "", 0.6), "a\n[took 0.6 s]"),
        (ExecutionResult(0, "a", "", 2.34, value="4"), "a\n4\n[took 2.3 s]"),
        (
            ExecutionResult(137, "", "", 4.0, timed_out=True, lost="Everything was stopped."),
            "[timeout: stopped after 4 seconds; it had printed nothing]\n[sandbox: Everything was stopped.]",
        ),
        (
            ExecutionResult(137, "so far\n", "", 30.02, timed_out=True),
            "so far\n[timeout: stopped after 30 seconds; above is what it printed until then; "
            "Python's variables are kept]",
        ),
        (
            ExecutionResult(137, "", "", 30.02, timed_out=True),
            "[timeout: stopped after 30 seconds; it had printed nothing; Python's variables are kept]",
        ),
    ],
)
async def test_a_model_reads_what_happened(completed: ExecutionResult, text: str) -> None:
    assert completed.text() == text
