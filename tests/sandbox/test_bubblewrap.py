import asyncio
from dataclasses import replace

import pytest

from maniple.errors import SandboxError
from maniple.sandbox import Sandbox
from maniple.workspace import Workspace
from tests.sandbox.heaps import MANY_HEAPS

pytestmark = pytest.mark.anyio


async def test_python_prints_what_it_computes(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_python("print(1 + 3)", key="thread", workspace=workspace)
    assert (completed.exit_code, completed.stdout, completed.stderr) == (0, "4\n", "")
    assert completed.text() == "4"


async def test_localhost_and_the_user_have_names(sandbox: Sandbox, workspace: Workspace) -> None:
    code = """
import getpass, grp, os, pwd, socket
server = socket.create_server(("localhost", 0))
with socket.create_connection(("localhost", server.getsockname()[1])):
    print(pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, getpass.getuser())
print(socket.gethostbyname(socket.gethostname()))
"""
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert (completed.stderr, completed.stdout) == ("", "sandbox sandbox sandbox\n127.0.0.1\n")
    named = await sandbox.run_bash("whoami; id -gn; echo ~sandbox", key="thread", workspace=workspace)
    assert (named.stderr, named.stdout) == ("", "sandbox\nsandbox\n/tmp\n")


async def test_a_traceback_shows_the_failing_line(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_python("print('before')\n1 / 0", key="thread", workspace=workspace)
    text = completed.text()
    assert text.startswith("before\n[stderr]\nTraceback")
    assert "1 / 0" in text
    assert "ZeroDivisionError" in text
    assert text.endswith("[exit code 1]")


async def test_bash_runs_pipelines_and_reports_their_exit_code(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    completed = await sandbox.run_bash(
        "seq 5 | paste -sd+ | tee sum; exit 3", key="thread", workspace=workspace
    )
    assert (completed.exit_code, completed.stdout) == (3, "1+2+3+4+5\n")


async def test_a_command_that_does_not_exist_is_a_result(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_bash("no-such-command", key="thread", workspace=workspace)
    assert completed.exit_code == 127
    assert "no-such-command" in completed.stderr


async def test_a_process_ended_by_a_signal_names_it(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_python(
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", key="thread", workspace=workspace
    )
    assert completed.text() == (
        "[exit code 139, SIGSEGV]\n"
        "[sandbox: The Python process ended: variables and background processes are gone; files are kept.]"
    )


async def test_unicode_passes_both_ways(sandbox: Sandbox, workspace: Workspace) -> None:
    code = "text = 'naïve 汉字 🦀'\nprint(text, len(text))"
    assert (await sandbox.run_python(code, key="thread", workspace=workspace)).stdout == "naïve 汉字 🦀 10\n"
    assert (await sandbox.run_bash("echo 'ß → ∞'", key="thread", workspace=workspace)).stdout == "ß → ∞\n"


async def test_output_that_is_no_text_is_still_shown(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_bash(r"printf 'a\377b'", key="thread", workspace=workspace)
    assert completed.stdout == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('a') if", "SyntaxError"),
        ("raise SystemExit('\0')", ""),
        ("print('\ud800' == chr(0xD800))", "True"),
    ],
)
async def test_code_that_is_hard_to_write_down_is_a_result(
    sandbox: Sandbox, workspace: Workspace, code: str, said: str
) -> None:
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert said in completed.text()


async def test_files_stay_in_the_workspace_between_python_and_bash(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    await sandbox.run_python("open('note.txt', 'w').write('kept')", key="thread", workspace=workspace)
    completed = await sandbox.run_bash("pwd; cat note.txt; rm note.txt", key="thread", workspace=workspace)
    assert completed.stdout == "/workspace\nkept"
    assert workspace.files(10) == []


async def test_what_a_command_exports_does_not_stay_and_private_files_do(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    await sandbox.run_bash("export KEPT=1; touch /tmp/kept", key="thread", workspace=workspace)
    completed = await sandbox.run_bash("echo ${KEPT:-gone}; ls /tmp", key="thread", workspace=workspace)
    assert completed.stdout == "gone\nkept\n"
    await sandbox.stop("thread")
    assert (await sandbox.run_bash("ls /tmp", key="thread", workspace=workspace)).stdout == ""


async def test_a_module_in_the_workspace_can_be_imported(sandbox: Sandbox, workspace: Workspace) -> None:
    workspace.write("helper.py", b"answer = 42")
    completed = await sandbox.run_python(
        "import helper; print(helper.answer)", key="thread", workspace=workspace
    )
    assert completed.stdout == "42\n"


async def test_a_program_that_waits_for_input_gets_its_end(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_python("input('name? ')", key="thread", workspace=workspace)
    assert "EOFError" in completed.stderr


async def test_sixteen_threads_at_once_are_all_right(sandbox: Sandbox, workspace: Workspace) -> None:
    calls = [
        sandbox.run_python(f"print({number} ** 2)", key=f"thread {number}", workspace=workspace)
        for number in range(16)
    ]
    results = await asyncio.gather(*calls)
    assert [result.stdout for result in results] == [f"{number**2}\n" for number in range(16)]


async def test_a_sandbox_that_cannot_start_gives_the_reason(sandbox: Sandbox, workspace: Workspace) -> None:
    with pytest.raises(SandboxError, match=r"bwrap: .*missing"):
        missing = replace(workspace, path=workspace.path / "missing")
        await sandbox.run_python("print(1)", key="thread", workspace=missing)


async def test_threads_share_the_heaps_that_the_limit_has_room_for(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    completed = await sandbox.run_python(MANY_HEAPS, key="thread", workspace=workspace)
    assert completed.stdout == "24\n", completed.text()
    variables = await sandbox.run_bash("env", key="thread", workspace=workspace)
    assert "MALLOC_ARENA_MAX=2" in variables.stdout
    assert "OMP_NUM_THREADS=2" in variables.stdout


async def test_memory_that_is_reserved_and_not_used_is_no_overrun(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    # The limit is 512 MB.
    code = "import mmap\nreserved = mmap.mmap(-1, 700 << 20)\nlen(reserved) >> 20"
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert (completed.value, completed.lost) == ("700", "")
    code = "reserved.close()\nused = bytearray(b'1') * (700 << 20)\nwhile True: pass"
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert "more than 512 MB" in completed.lost
