"""The interactive prompt on a real terminal, with the real team behind it."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import ALT_ENTER, CTRL_C, ENTER, PROMPT, environment, on_terminal
from tests.cli.scripts import REPORT
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as running:
        yield running


async def test_a_conversation_shows_the_team_at_work_and_its_report_can_be_saved(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(f"scripted at {server.base_url}\\.", 40)
        await terminal.see(PROMPT)
        await terminal.enter(
            "1+3=?",
            "planner",
            r"Plan: 1 \+ 3",
            r"python_repl_tool  print\(1\+3\)",
            r"↳ \d+\.\d s  4",
            "✔  1 coder",
            r"The answer is 4\.\s",
            r"✔ completed · \d+\.\d s · \d model calls",
        )
        await terminal.enter("/save report.md", rf"Saved to\s+{tmp_path}/report.md")
        await terminal.enter("/hepl", r"Did you mean /help\?")
        assert await terminal.leave() == 0

    assert (tmp_path / "report.md").read_text() == REPORT
    history = tmp_path / "data" / "history"
    assert "+1+3=?" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o077 == 0


async def test_ctrl_c_cancels_the_run_and_not_the_program(tmp_path: Path) -> None:
    with serving({"coordinator": [{"hang": True}, reply("Still here.")]}) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"hello{ENTER}")
            await terminal.see("coordinator waits for the model")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 1)
            terminal.type(CTRL_C)
            await terminal.see("✘ cancelled")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)
            await terminal.see(PROMPT)
            await terminal.enter("are you there?", r"Still here\.", "✔ completed")
            terminal.type(f"/quit{ENTER}")
            assert await terminal.ended() == 0


async def test_ctrl_c_at_the_prompt_clears_the_line(server: OpenAIServer, tmp_path: Path) -> None:
    async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
        await terminal.see(PROMPT, 40)
        terminal.type("nonsense")
        await terminal.see("nonsense")
        terminal.type(CTRL_C)
        await terminal.enter("/team coder", "– researcher", "✔ coder")
        terminal.type(CTRL_C)
        await terminal.see("Ctrl-D or enter /quit")
        await terminal.see(PROMPT)
        assert await terminal.leave() == 0
    assert server.requests == []


async def test_a_message_of_several_lines_is_pasted_or_typed_as_one(
    server: OpenAIServer, tmp_path: Path
) -> None:
    async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
        await terminal.see(PROMPT, 40)
        terminal.type("\x1b[200~pasted one\rpasted two\x1b[201~")
        await terminal.see("pasted two")
        await terminal.enter(f"{ALT_ENTER}typed three", "✔ completed")
        assert await terminal.leave() == 0
    assert "pasted one\npasted two\ntyped three" in [m["content"] for m in server.requests[0]["messages"]]


async def test_a_plan_is_reviewed_at_the_prompt(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url, NO_COLOR="1")
    async with on_terminal("--review", "1+3=?", folder=tmp_path, env=env) as terminal:
        await terminal.see("☐  1 coder", 40)
        await terminal.see("Enter accepts it, e edits")
        await terminal.see(PROMPT)
        terminal.type(ENTER)
        await terminal.see(r"The answer is 4\.\s")
        await terminal.see("✔ completed")
        assert await terminal.ended() == 0
    assert not re.search(r"\x1b\[[0-9;]*\b[39][0-7]\b[0-9;]*m", terminal.raw), "NO_COLOR is set"


async def test_the_void_part_of_an_answer_and_the_files_of_the_team_are_reported(tmp_path: Path) -> None:
    writes = call("python_repl_tool", code="open('table.csv', 'w').write('1,2')")
    broken, right = reply("It is five, I think.", cut_after=3), reply("It is four.")
    script = {**SIMPLE, "coder": [writes, reply("Done.")], "reporter": [broken, right, right]}
    with serving(script) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter(
                "1+3=?",
                "answer broke off",
                r"It is four\.",
                "✔ completed",
                rf"Files in\s+{tmp_path}/data/workspaces/[0-9a-f-]+:\s+table\.csv  3 bytes",
            )
            await terminal.enter("/new", "New conversation")
            assert await terminal.leave() == 0


async def test_what_is_typed_while_the_team_works_goes_to_its_lead(tmp_path: Path) -> None:
    decision = {"decision": "answer", "reply": "Gladly, in euros.", "changes": [], "steps": []}
    script = {**SIMPLE, "coder": [{"hang": True}], "supervisor": [reply(json.dumps(decision))]}
    with serving(script) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"1+3=?{ENTER}")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            terminal.type("In eurs")
            await terminal.see("› In eurs")  # it is shown while it is typed
            terminal.type(f"\x7fos, pl\x1b[Dease.{ENTER}")
            await terminal.see(r"lead: Gladly, in euros\.")
            terminal.type("/quit")
            await terminal.see("› /quit")
            terminal.type(CTRL_C)
            await terminal.see("✘ cancelled")
            await terminal.see("/quit")  # what was not sent is in the next line
            terminal.type(ENTER)
            assert await terminal.ended() == 0
        (asked,) = [one for one in server.requests if "euros, please" in str(one["messages"][-1])]
    assert "In euros, please." in asked["messages"][-1]["content"]


ASKED = [
    {"agent_name": "researcher", "title": "Ask", "description": "Ask.", "needs": []},
    {"agent_name": "coder", "title": "Work", "description": "Work.", "needs": []},
    {"agent_name": "reporter", "title": "Report", "description": "Report."},
]
IN_EUROS = {"decision": "answer", "reply": "Gladly, in euros.", "changes": [], "steps": []}
ASKING = {
    **SIMPLE,
    "by_history": True,
    "planner": [reply(json.dumps({"thought": "", "title": "Tea", "steps": ASKED}))],
    "researcher": [call("ask_human", question="Which year?", options=["2023", "2024"]), reply("Of 2024.")],
    "coder": [{**reply("It is 4."), "hang": True}],
    "supervisor": [reply(json.dumps(IN_EUROS))],
}


async def test_text_typed_while_a_step_asks_is_its_answer(tmp_path: Path) -> None:
    with serving(ASKING) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"What does tea cost?{ENTER}")
            await terminal.see(r"researcher \(step 1\)")
            await terminal.see(r"Which year\?")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            terminal.type(f"/team In euros, please.{ENTER}")
            await terminal.see(r"lead: Gladly, in euros\.")
            terminal.type(f"3{ENTER}")
            await terminal.see("from 1 to 2")
            terminal.type(f"2{ENTER}")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("researcher") == 2)
            server.release()
            await terminal.see("✔ completed")
            await terminal.see(PROMPT)
            assert await terminal.leave() == 0
        answered = [one["messages"] for one in server.requests if "You are the researcher" in str(one)][-1]
    assert "2024" in str(answered[-1])
    assert server.stats["by_role"]["supervisor"] == 1


async def test_text_begun_before_a_step_asks_goes_to_the_lead(tmp_path: Path) -> None:
    asks, done = ASKING["researcher"]
    writes = {**call("write_file", path="a.txt", content="4"), "hang": True}
    held = {"researcher": [{**asks, "hang": True}, done], "coder": [writes, *ASKING["coder"]]}
    with serving({**ASKING, **held}) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"What does tea cost?{ENTER}")
            both = {"researcher", "coder"}
            await asyncio.to_thread(server.wait_for, lambda stats: both <= stats["by_role"].keys())
            terminal.type("In euros,")
            await terminal.see("› In euros,")
            server.release()
            await terminal.see(r"Which year\?")
            terminal.type(f" please.{ENTER}")
            await terminal.see(r"lead: Gladly, in euros\.")
            terminal.type(f"2{ENTER}")
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"]["researcher"] == 2)
            server.release()
            await terminal.see("✔ completed")
            await terminal.see(PROMPT)
            assert await terminal.leave() == 0
        answered = [one["messages"] for one in server.requests if "You are the researcher" in str(one)][-1]
    assert "2024" in str(answered[-1])
    assert "please" not in str(answered[-1])
    assert server.stats["by_role"]["supervisor"] == 1
