"""What the team waits for, answered at a terminal or on the command line, now or after a restart."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.processes import CTRL_C, ENTER, PROMPT, environment, on_terminal, run
from tests.cli.scripts import REPORT, hangs
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio
APPROVAL = {"MANIPLE_RUNS__APPROVAL": "python_repl_tool"}
ASKS = call("ask_human", question="Which base?", options=["ten", "two"])


def tool_results(server: OpenAIServer) -> str:
    """Return the tool results that the coder's model got last."""
    return json.dumps([m for m in server.requests[-2]["messages"] if m["role"] == "tool"], ensure_ascii=False)


def editor(folder: Path, before: str, after: str) -> str:
    """A command that edits a file as a person would."""
    script = folder / "editor.py"
    script.write_text(
        "import sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        f"file.write_text(file.read_text().replace({before!r}, {after!r}))\n"
    )
    return f"{sys.executable} {script}"


def thread_of(notes: str) -> str:
    """The id in the words that say how to answer."""
    found = re.search(r"Answer with: maniple chat --thread ([0-9a-f-]{36}) ", notes)
    assert found, notes
    return found[1]


async def test_a_plan_that_waits_is_accepted_by_another_program(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url)
        status, output, notes = await run("--review", "1+3=?", folder=tmp_path, env=env)
        assert (status, output) == (3, "")
        assert "Compute 1 + 3 with Python." in notes
        assert "Enter" not in notes and "e edits" not in notes, "no key can be pressed there"
        assert notes.splitlines()[-1].endswith(" accept")
        status, output, last = await run("--thread", thread_of(notes)[:8], "accept", folder=tmp_path, env=env)
        assert (status, output) == (0, REPORT)
        assert f"· {sum(server.stats['by_role'].values())} model calls ·" in last
        assert server.stats["by_role"]["planner"] == 1


async def test_words_on_a_plan_make_another_one(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal("--review", folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("1+3=?", "Approve the plan")
            await terminal.enter("without Python", "Approve the plan")
            assert "without Python" in json.dumps(server.requests[-1])
            await terminal.enter("accept", r"answer is 4\.\s")
            assert await terminal.leave() == 0


async def test_the_steps_of_a_plan_are_edited_in_the_persons_editor(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        edits = editor(tmp_path, "Compute 1 + 3 with Python.", "Compute it in your head.")
        env = environment(tmp_path, server.base_url, EDITOR=edits)
        async with on_terminal("--review", "1+3=?", folder=tmp_path, env=env) as terminal:
            await terminal.see("Approve the plan", 40)
            await terminal.see(PROMPT)
            terminal.type(f"e{ENTER}")
            await terminal.see(r"answer is 4\.\s")
            assert await terminal.ended() == 0
        coder = [r for r in server.requests if "You are the coder" in json.dumps(r)]
        assert "Compute it in your head." in json.dumps(coder[0])


async def test_a_message_is_written_in_the_persons_editor(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, EDITOR=editor(tmp_path, "1+3", "5+4"))
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/edit", "nothing was sent")
            await terminal.enter("/edit What is 1+3?", r"answer is 4\.\s")
            assert "What is 5+4?" in json.dumps(server.requests[0])
            await terminal.see(PROMPT)
            # The last question has nothing to replace any more: it is left as it is.
            await terminal.enter("/edit", "nothing was sent")
            assert await terminal.leave() == 0
        env["EDITOR"] = editor(tmp_path, "5+4", "6+5")
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/resume", r"answer is 4\.\s")
            asked = len(server.requests)
            await terminal.enter("/edit", r"(?s)› What is 6\+5\?.*answer is 4\.\s")
            assert "What is 6+5?" in json.dumps(server.requests[asked])
            assert await terminal.leave() == 0


async def test_a_failing_editor_sends_nothing(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, EDITOR="false")
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/edit 1+3=?", "ended with status 1")
            assert await terminal.leave() == 0
        assert not server.requests


async def test_a_tool_runs_after_its_exact_arguments_were_approved(tmp_path: Path) -> None:
    with serving(
        {**SIMPLE, "coder": [call("python_repl_tool", code="x = 1\nprint(x + 3)"), reply("4")]}
    ) as server:
        env = environment(tmp_path, server.base_url, **APPROVAL)
        async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
            await terminal.see(r"asks for approval.*\s+code:\s+│ x = 1\s+│ print\(x \+ 3\)", 40)
            await terminal.see("y runs it, e edits")
            await terminal.see(PROMPT)
            await terminal.enter("", "Nothing was decided")
            terminal.type(f"y{ENTER}")
            await terminal.see(r"answer is 4\.\s")
            assert await terminal.ended() == 0


async def test_a_refused_tool_does_not_run_and_the_team_gets_the_reason(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, **APPROVAL)
        status, _, notes = await run("1+3=?", folder=tmp_path, env=env)
        assert status == 3
        assert "python_repl_tool asks for approval" in notes and "    code: print(1+3)" in notes
        status, _, _ = await run("--thread", thread_of(notes), "n", "too", "risky", folder=tmp_path, env=env)
        assert status == 0
        assert "call: n too risky" in tool_results(server)


async def test_arguments_are_edited_at_the_prompt_where_there_is_no_editor(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, **APPROVAL)
        async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
            await terminal.see("y runs it", 40)
            await terminal.see(PROMPT)
            terminal.type(f"e{ENTER}")
            await terminal.see(r'"code": "print\(1\+3\)"')
            await terminal.see("Alt-Enter")
            terminal.type("\x7f" * 40 + f'{{"code": "print(2+5)"}}{ENTER}')
            await terminal.see(r"answer is 4\.\s")
            assert await terminal.ended() == 0
        assert "7" in tool_results(server)


async def test_of_several_calls_the_first_is_named_and_decided_first(tmp_path: Path) -> None:
    codes = ("print('one')", "print('two')", "print('three')")
    three = {"tool_calls": [{"name": "python_repl_tool", "arguments": {"code": code}} for code in codes]}
    with serving({**SIMPLE, "coder": [three, reply("Done.")]}) as server:
        env = environment(tmp_path, server.base_url, **APPROVAL)
        async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
            await terminal.see(r"first of 3 calls: python_repl_tool code: print\('one'\)", 40)
            await terminal.see(PROMPT)
            terminal.type(f"n, not this one{ENTER}")
            await terminal.see(r"first of 2 calls: python_repl_tool code: print\('two'\)")
            await terminal.see(PROMPT)
            assert await terminal.leave() == 3
        thread = re.search(r"--thread ([0-9a-f-]{36}) y", terminal.text())[1]
        status, _, notes = await run("--thread", thread, "y", folder=tmp_path, env=env)
        assert status == 3 and "three" in notes
        status, _, _ = await run("--thread", thread, "y", folder=tmp_path, env=env)
        shown = json.loads(tool_results(server))
    assert ["not this one" in one["content"] for one in shown] == [True, False, False]
    assert "two" in shown[1]["content"] and "three" in shown[2]["content"]


async def test_a_question_of_the_team_is_answered_by_number_after_a_restart(tmp_path: Path) -> None:
    with serving({**SIMPLE, "coder": [ASKS, reply("4")]}) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("1+3=?", r"Which base\?\s+1  ten\s+2  two")
            assert await terminal.leave() == 0
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/threads", r"1  [0-9a-f]{8}  just now  waiting for you  1\+3=\?")
            await terminal.enter(
                "/resume 1",
                r"› 1\+3=\?",
                r"Which base\?\s+1  ten\s+2  two",
                "Answer with a number",
            )
            await terminal.enter("2", r"answer is 4\.\s")
            assert await terminal.leave() == 0
        assert '"two"' in tool_results(server)


async def test_what_waits_can_be_dropped_and_the_conversation_goes_on(tmp_path: Path) -> None:
    with serving({**SIMPLE, "coordinator": [*SIMPLE["coordinator"], reply("As you like.")]}) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal("--review", folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("1+3=?", "Approve the plan")
            terminal.type(CTRL_C)
            await terminal.see("Ctrl-D or enter /quit")
            await terminal.see(PROMPT)
            await terminal.enter("/cancel", r'Cancelled: "1\+3=\?"')
            await terminal.enter("never mind", r"As you like\.")
            await terminal.enter("/cancel", "Nothing waits for you")
            assert await terminal.leave() == 0


async def test_an_exhausted_budget_is_reported_with_its_own_exit_status(tmp_path: Path) -> None:
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_RUNS__BUDGET__MODEL_CALLS="3")
        status, output, notes = await run("1+3=?", folder=tmp_path, env=env)
    assert status == 4
    assert output != ""
    assert notes.splitlines()[-2].startswith("! the budget ran out")


async def test_an_answer_is_written_to_the_store_before_it_is_shown_to_be_taken(tmp_path: Path) -> None:
    script = {**SIMPLE, "coder": [ASKS, {"hang": True}, reply("4")]}
    with serving(script) as server:
        env = environment(tmp_path, server.base_url)
        _, _, notes = await run("1+3=?", folder=tmp_path, env=env)
        async with on_terminal("--thread", thread_of(notes), folder=tmp_path, env=env) as terminal:
            await terminal.see("Answer with a number", 40)
            await terminal.see(PROMPT)
            terminal.type(f"1{ENTER}")
            await hangs(server)
            terminal.process.kill()
            await terminal.ended()
        status, output, _ = await run("--continue", folder=tmp_path, env=env)
        assert (status, output) == (0, REPORT)
        assert '"ten"' in tool_results(server)
