"""What persists between the calls of a thread, what does not, and the notices to its model."""

import asyncio

import pytest

from maniple.workspace import Workspace
from tests.sandbox.host import all_end, new_marker, stubborn_daemon, watched, word_from_inside
from tests.sandbox.thread import Thread

pytestmark = pytest.mark.anyio

GONE = "variables and background processes are gone"


async def test_variables_functions_and_imports_stay(thread: Thread) -> None:
    await thread.python("import math\nx = 20\ndef double(n): return 2 * n")
    assert (await thread.python("x += 1; print(double(x), math.floor(2.5))")).stdout == "42 2\n"


async def test_a_traceback_has_the_lines_of_earlier_calls_and_none_of_ours(thread: Thread) -> None:
    await thread.python("def inner():\n    return missing_name\n")
    trace = (await thread.python("def outer():\n    return inner()\nouter()")).stderr
    assert "return inner()" in trace
    assert "return missing_name" in trace
    assert "interpreter" not in trace
    assert "worker" not in trace


@pytest.mark.parametrize(("code", "exit_code"), [("exit()", 0), ("raise SystemExit(3)", 3), ("quit(1)", 1)])
async def test_leaving_ends_the_call_and_not_the_session(thread: Thread, code: str, exit_code: int) -> None:
    await thread.python("x = 1")
    completed = await thread.python(code)
    assert (completed.exit_code, completed.lost) == (exit_code, "")
    assert (await thread.python("x")).value == "1"


async def test_python_and_bash_see_each_others_files(thread: Thread) -> None:
    await thread.python("open('a.txt', 'w').write('one')")
    assert (await thread.bash("cat a.txt; echo two > b.txt")).stdout == "one"
    assert (await thread.python("open('b.txt').read()")).value == "'two\\n'"


async def test_variables_survive_a_soft_timeout_that_names_the_line(hasty: Thread) -> None:
    await hasty.python("x = 1")
    completed = await hasty.python("x = 2\nprint('so far')\nwhile True:\n    pass\n")
    assert completed.timed_out
    assert completed.lost == ""
    assert completed.stdout == "so far\n"
    assert "line 4, in <module>" in completed.stderr or "line 3, in <module>" in completed.stderr
    assert completed.text().endswith("Python's variables are kept]")
    assert (await hasty.python("x")).value == "2"


async def test_a_child_process_that_is_waited_for_ends_at_the_timeout_too(hasty: Thread) -> None:
    completed = await hasty.python("x = 1\nimport os\nos.system('sleep 1000')")
    assert completed.timed_out
    assert completed.lost == ""
    assert (await hasty.python("x")).value == "1"


async def test_variables_survive_the_timeout_of_a_command(hasty: Thread) -> None:
    await hasty.python("x = 1")
    completed = await hasty.bash("echo so far; sleep 1000 | sleep 1000")
    assert (completed.timed_out, completed.stdout, completed.lost) == (True, "so far\n", "")
    assert (await hasty.python("x")).value == "1"
    assert "sleep" not in (await hasty.bash("cat /proc/[0-9]*/comm")).stdout


@pytest.mark.slow
async def test_after_a_hard_timeout_variables_are_gone_and_files_are_not(hasty: Thread) -> None:
    await hasty.python("x = 1\nopen('kept', 'w').write('kept')")
    stubborn = (
        "while True:\n    try:\n        for _ in iter(int, 1): int()\n    except KeyboardInterrupt: pass"
    )
    completed = await hasty.python(stubborn)
    assert completed.timed_out
    assert GONE in completed.lost
    again = await hasty.python("print(open('kept').read())\nx")
    assert again.stdout == "kept\n"
    assert "NameError" in again.stderr
    assert again.lost == ""


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("import os; os._exit(5)", 5), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137)],
)
async def test_a_python_crash_loses_the_variables_and_reports_it(
    thread: Thread, code: str, exit_code: int
) -> None:
    await thread.python("x = 1")
    completed = await thread.python(f"print('last words')\n{code}")
    assert (completed.exit_code, completed.stdout) == (exit_code, "last words\n")
    assert GONE in completed.lost
    assert "NameError" in (await thread.python("x")).stderr


async def test_a_python_crash_between_two_calls_is_reported_by_the_next(
    thread: Thread, workspace: Workspace
) -> None:
    marker = new_marker()
    code = stubborn_daemon(marker) + "import os, threading; threading.Timer(0.3, os._exit, (1,)).start()"
    async with word_from_inside(workspace.path) as word:
        await thread.python(code)
        assert await word == "started"
        with watched(marker) as processes:
            await asyncio.to_thread(all_end, processes, 10)
    completed = await thread.python("'os' in globals()")
    assert completed.value == "False"
    assert completed.lost.startswith("The Python process ended")


async def test_after_a_cancelled_call_the_next_reports_lost_variables(
    thread: Thread, workspace: Workspace
) -> None:
    await thread.python("x = 1")
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(thread.python("open('word', 'w').write('begun')\nwhile True: pass"))
        assert await word == "begun"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    completed = await thread.python("'x' in globals()")
    assert completed.value == "False"
    assert "call was cancelled" in completed.lost


async def test_a_forked_child_that_runs_on_does_not_answer_for_its_parent(thread: Thread) -> None:
    completed = await thread.python("import os\nprint('twice')\nchild = os.fork()\nif child: os.wait()")
    assert (completed.exit_code, completed.stdout) == (0, "twice\n")
    assert (await thread.python("child > 0")).value == "True"


async def test_the_source_of_a_function_can_be_looked_up(thread: Thread) -> None:
    code = "def f():\n    return 1\n\nimport inspect\nprint(inspect.getsource(f))"
    assert (await thread.python(code)).stdout == "def f():\n    return 1\n\n"
    assert (await thread.python("print(inspect.getsource(f))")).stdout == "def f():\n    return 1\n\n"


async def test_a_class_of_an_earlier_call_goes_to_other_processes(thread: Thread) -> None:
    await thread.python("def square(n): return n * n")
    code = "from multiprocessing import Pool\nwith Pool(2) as pool: print(pool.map(square, [1, 2, 3]))"
    assert (await thread.python(code)).stdout == "[1, 4, 9]\n"


async def test_await_works_at_top_level_and_its_event_loop_stays(thread: Thread) -> None:
    two = "import asyncio\nasync def two():\n    await asyncio.sleep(0)\n    return 2"
    first = f"{two}\nlater = asyncio.Event()\nawait two()"
    assert (await thread.python(first)).value == "2"
    assert (await thread.python("later.set(); await later.wait()")).value == "True"
    gathered = await thread.python(
        "async with asyncio.Lock():\n    print(sum(await asyncio.gather(two(), two())))"
    )
    assert gathered.stdout == "4\n"
    assert (await thread.python("asyncio.run(two())")).value == "2", "a program with its own loop works, too"
    failed = await thread.python("async def bad(): raise ValueError('so')\nawait bad()")
    assert "ValueError: so" in failed.stderr
    assert "interpreter" not in failed.stderr
    assert (await thread.python("await two()")).value == "2"


async def test_an_interrupted_await_does_not_go_on_in_the_next_call(hasty: Thread) -> None:
    loop = "async def loop():\n    while True:\n        await asyncio.sleep(0.01)\n        print('on')"
    code = f"import asyncio\n{loop}\nawait loop()"
    assert (await hasty.python(code)).timed_out
    after = await hasty.python("await asyncio.sleep(0.05); print('over')")
    assert after.stdout == "over\n"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("!pip install numpy", "bash_tool: pip install numpy"),
        ("x = 1\n  \n!ls", "bash_tool: ls"),
        ("%matplotlib inline\nprint(1)", "Leave it out"),
        ("%%timeit\nsum(range(9))", "perf_counter"),
        ("%pip install -q pandas", "bash_tool: pip install -q pandas"),
        ("%%bash\nls {a}", "bash_tool"),
        ("import os\n%cd out/{x}", "os.chdir('out/{x}')"),
        ("files = !ls *.csv", "subprocess.run: ls *.csv"),
        ("if True:\n    !mkdir out", "bash_tool: mkdir out"),
        ("%load_ext autoreload", "Leave it out"),
    ],
)
async def test_a_notebooks_syntax_is_answered_with_what_to_do(thread: Thread, code: str, advice: str) -> None:
    failed = await thread.python(code)
    assert failed.exit_code == 1
    assert advice in failed.stderr


async def test_another_mistake_is_answered_with_itself_alone(thread: Thread) -> None:
    for code in ("x = = 1", "x = 1 !== 2", "x == !y", "f(a = !b)", "print('a!' 5 = 'b')"):
        assert "notebook" not in (await thread.python(code)).stderr
