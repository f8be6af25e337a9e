"""What a call shows: values, output and errors, also of its children; and that it has no input."""

import os

import pytest

from maniple.sandbox import Sandbox
from maniple.workspace import Workspace
from tests.sandbox.host import word_from_inside
from tests.sandbox.thread import Thread

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("x = 3\nx", "3"),
        ("x = 3", ""),
        ("None", ""),
        ("print('p')", ""),
        ("'text'", "'text'"),
        ("7;", ""),
        ("", ""),
        ("# nothing", ""),
    ],
)
async def test_the_value_of_the_last_expression_is_shown(thread: Thread, code: str, value: str) -> None:
    completed = await thread.python(code)
    assert (completed.exit_code, completed.value) == (0, value)


async def test_the_last_value_has_a_name(thread: Thread) -> None:
    await thread.python("6 * 7")
    assert (await thread.python("_ + 1")).value == "43"


async def test_a_long_value_keeps_its_head_and_tail(thread: Thread) -> None:
    value = (await thread.python("list(range(100_000))")).value
    assert value.startswith("[0, 1, 2,")
    assert value.endswith("99999]")
    assert "characters cut" in value
    assert len(value) < 1_200


async def test_a_value_that_cannot_be_shown_is_an_error_of_the_code(thread: Thread) -> None:
    code = "class Odd:\n    def __repr__(self): return 1 / 0\nOdd()"
    completed = await thread.python(code)
    assert completed.exit_code == 1
    assert "ZeroDivisionError" in completed.stderr


async def test_code_that_breaks_its_own_output_has_it_again_in_the_next_call(thread: Thread) -> None:
    await thread.python("import sys, os, io\nsys.stdout.close()\nsys.stderr = io.StringIO()\nos.close(1)")
    completed = await thread.python("import sys\nprint('here')\nprint('there', file=sys.stderr)")
    assert (completed.stdout, completed.stderr) == ("here\n", "there\n")


async def test_output_of_child_processes_and_of_c_code_is_caught(thread: Thread) -> None:
    code = """
import ctypes, os, subprocess
ctypes.CDLL(None).puts(b"from C")
os.write(2, b"raw\\n")
subprocess.run(["echo", "from a child"])
"""
    completed = await thread.python(code)
    assert sorted(completed.stdout.splitlines()) == ["from C", "from a child"]
    assert completed.stderr == "raw\n"


async def test_what_a_background_process_prints_later_is_in_a_later_call(thread: Thread) -> None:
    started = await thread.bash("mkfifo go; (read word < go; echo later; echo done > said) & echo now")
    assert started.stdout == "now\n"
    await thread.bash("mkfifo said; echo go > go; cat said > /dev/null")
    assert (await thread.bash("true")).stdout in ("", "later\n")


async def test_a_background_process_does_not_hold_a_call(hasty: Thread) -> None:
    completed = await hasty.bash("sleep 1000 & echo started")
    assert (completed.stdout, completed.timed_out) == ("started\n", False)


@pytest.mark.parametrize("command", ["cat", "read word; echo $?", "python3 -c 'print(input())'", "bash -i"])
async def test_a_program_that_waits_for_input_gets_its_end(thread: Thread, command: str) -> None:
    completed = await thread.bash(command)
    assert not completed.timed_out
    assert completed.seconds < 10


async def test_reading_input_reports_that_there_is_none(thread: Thread) -> None:
    completed = await thread.python("name = input('Your name? ')")
    assert completed.stdout == "Your name? "
    assert "nobody can type here" in completed.stderr


async def test_a_command_as_long_as_a_file_runs(thread: Thread) -> None:
    lines = "line of text\n" * 20_000
    completed = await thread.bash(f"cat > long.txt <<'EOF'\n{lines}EOF\nwc -l < long.txt")
    assert completed.stdout == "20000\n"


async def test_a_command_with_a_zero_byte_runs_without_it(thread: Thread) -> None:
    assert (await thread.bash("echo a\0b")).stdout == "ab\n"


async def test_a_command_beyond_the_process_limit_is_reported(thread: Thread) -> None:
    code = """
import os, signal
children = []
try:
    while True:
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)
except OSError as error:
    print(error.strerror)
"""
    assert (await thread.python(code)).stdout == "Resource temporarily unavailable\n"
    completed = await thread.bash("echo more")
    assert completed.exit_code == 126
    assert completed.stderr == "bash could not be started: Resource temporarily unavailable\n"
    await thread.python("for child in children: os.kill(child, 9), os.waitpid(child, 0)")
    assert (await thread.bash("echo more")).stdout == "more\n"


async def test_a_background_process_that_prints_without_end_keeps_no_one_busy(
    thread: Thread, workspace: Workspace
) -> None:
    await thread.bash("yes & echo started")
    before = os.times()
    async with word_from_inside(workspace.path) as word:
        await thread.bash("(sleep 1; echo well > word) < /dev/null > /dev/null 2>&1 &")
        assert await word == "well\n"
    after = os.times()
    assert after.user + after.system - before.user - before.system < 0.4
    completed = await thread.bash("true")
    assert completed.exit_code == 0
    assert "bytes cut" in completed.stdout


async def test_output_is_streamed_as_it_arrives(sandbox: Sandbox, workspace: Workspace) -> None:
    heard: list[tuple[str, str]] = []
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
    await sandbox.run_python(code, key="t", workspace=workspace, on_output=lambda *piece: heard.append(piece))
    words = {name: "".join(text for stream, text in heard if stream == name) for name in ("stdout", "stderr")}
    assert words == {"stdout": "out\n", "stderr": "err\n"}


async def test_a_file_named_like_a_module_of_python_hides_nothing(
    thread: Thread, workspace: Workspace
) -> None:
    for name in ("traceback", "linecache", "site", "importlib"):
        workspace.write(f"{name}.py", b"raise RuntimeError('hidden')")
    workspace.write("mine.py", b"answer = 42")
    completed = await thread.python("import mine\nprint(mine.answer)\n1 / 0")
    assert completed.stdout == "42\n"
    assert "ZeroDivisionError: division by zero" in completed.stderr
    assert "hidden" not in completed.stderr
