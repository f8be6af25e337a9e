"""Stored conversations that another process continues."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import MANIPLE, PROMPT, environment, maniple, on_terminal, run
from tests.openai_server import OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(
        {"coordinator": [reply("I am *one*."), reply("I am two."), reply("I am three.")]}
    ) as running:
        yield running


async def asked(question: str, folder: Path, env: dict[str, str], *arguments: str) -> str:
    """Ask once and return the id of the conversation."""
    _, output, _ = await run("--json", *arguments, question, folder=folder, env=env)
    return json.loads(output.splitlines()[0])["data"]["thread_id"]


async def test_a_conversation_is_continued_by_its_id_with_its_history(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?", tmp_path, env)
    status, output, notes = await run("--thread", thread_id[:8], "And now?", folder=tmp_path, env=env)
    assert (status, output) == (0, "I am two.\n")
    assert "Who are you?" not in notes
    contents = [message["content"] for message in server.requests[-1]["messages"]]
    assert contents[1:] == ["Who are you?", "I am *one*.", "And now?"]


@pytest.mark.parametrize("name", ["nonsense", "1", "00000000-0000-4000-8000-000000000000"])
async def test_an_unknown_id_is_reported_as_text(server: OpenAIServer, tmp_path: Path, name: str) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--thread", name, "And now?", folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    assert f"There is no conversation '{name}'." in notes
    assert "Traceback" not in notes and server.requests == []
    assert "starting the team" not in notes


async def test_an_answered_question_names_the_command_that_continues_the_conversation(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    _, output, notes = await run("Who are you?", folder=tmp_path, env=env)
    assert output == "I am *one*.\n"
    [thread_id] = re.findall(r"maniple chat --thread (\w+)", notes)
    status, output, _ = await run("--thread", thread_id, "And now?", folder=tmp_path, env=env)
    assert (status, output) == (0, "I am two.\n")


@pytest.mark.parametrize(
    ("path", "program"), [("/usr/bin:/bin", str(MANIPLE)), (f"{MANIPLE.parent}:/usr/bin:/bin", "maniple")]
)
async def test_the_command_that_continues_is_one_that_the_shell_finds(
    server: OpenAIServer, tmp_path: Path, path: str, program: str
) -> None:
    env = environment(tmp_path, server.base_url, PATH=path)
    _, _, notes = await maniple("chat", "Who are you?", folder=tmp_path, env=env)
    assert f"To continue this conversation: {program} chat --thread " in " ".join(notes.split())


async def test_conversations_are_listed_and_changed_between(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    first = await asked("Who are you?", tmp_path, env)
    await asked("Who else?", tmp_path, env)
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT, 40)
        await terminal.enter(
            "/threads",
            r"1  [0-9a-f]{8}  just now  completed  Who else\?",
            rf"2  {first[:8]}  just now  completed  Who are you\?",
        )
        await terminal.enter("/resume 2", r"› Who are you\?\s+I am one\.")
        await terminal.enter("/save one.md", "Saved to")
        await terminal.enter("And now?", r"I am three\.")
        await terminal.enter("/threads", rf"▸  2  {first[:8]}")
        await terminal.enter("/resume 77", "There is no conversation '77'")
        await terminal.enter("/cancel 1", r'nothing to cancel: "Who else\?" is not running')
        await terminal.enter("/resume", r"› Who else\?\s+I am two\.")
        assert await terminal.leave() == 0
    assert (tmp_path / "one.md").read_text() == "I am *one*.\n"
    contents = [message["content"] for message in server.requests[-1]["messages"]]
    assert contents[1:] == ["Who are you?", "I am *one*.", "And now?"]


async def test_nothing_is_listed_before_the_first_conversation(server: OpenAIServer, tmp_path: Path) -> None:
    async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
        await terminal.see(PROMPT, 40)
        for line, words in (("/threads", "no conversations yet"), ("/resume", "no other conversation yet")):
            await terminal.enter(line, words)
        assert await terminal.leave() == 0


async def test_a_run_that_failed_names_the_command_that_retries_it(tmp_path: Path) -> None:
    failing = {"coordinator": [{"status": 400, "error": "the scripted outage"}, reply("I am back.")]}
    with serving(failing) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("Who are you?", folder=tmp_path, env=env)
        found = re.search(r"chat --thread (\w+) --retry$", notes, re.M)
        assert status == 1
        assert found
        status, output, _ = await run("--thread", found[1], "--retry", folder=tmp_path, env=env)
        assert (status, output.strip()) == (0, "I am back.")
        status, _, _ = await run("--retry", folder=tmp_path, env=env)
        assert status == 2


async def test_a_run_is_retried_at_the_prompt(tmp_path: Path) -> None:
    failing = {"coordinator": [{"status": 400, "error": "the scripted outage"}, reply("I am back.")]}
    with serving(failing) as server:
        env = environment(tmp_path, server.base_url)
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("/retry", "no run")
            await terminal.enter("Who are you?", "failed")
            await terminal.enter("/retry", r"I am back\.")
            await terminal.enter("/retry", "nothing to retry")


async def test_a_report_is_saved_by_the_command_line_and_later_again_without_a_run(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?", tmp_path, env, "--save", "one.md")
    assert (tmp_path / "one.md").read_text() == "I am *one*.\n"
    requests = len(server.requests)
    status, output, notes = await run(
        "--thread", thread_id[:8], "--save", "two.html", folder=tmp_path, env=env
    )
    assert (status, output) == (0, ""), notes
    assert "<em>one</em>" in (tmp_path / "two.html").read_text()
    both = ("--save", "three.md", "--save", "three.html")
    status, _, notes = await run("--thread", thread_id, *both, folder=tmp_path, env=env)
    assert (status, (tmp_path / "three.md").exists(), (tmp_path / "three.html").exists()) == (0, True, True)
    assert len(server.requests) == requests
    status, _, notes = await run("--thread", thread_id, "--save", "no/x.md", folder=tmp_path, env=env)
    assert (status, "Traceback" in notes) == (1, False)
    assert f"--thread {thread_id[:8]} --save" in " ".join(notes.split())


STARTS = "starting the team"
READING = "/help\n/threads\n/files\n/sources\n/claims\n/new\n"


async def test_commands_that_only_read_do_not_open_the_team(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    thread_id = await asked("Who are you?", tmp_path, env)
    status, output, notes = await run("--thread", thread_id, folder=tmp_path, env=env, question=READING)
    assert (status, STARTS in notes) == (0, False), notes
    assert thread_id[:8] in output and "/resume" in output
    status, _, notes = await run("--continue", folder=tmp_path, env=env)
    assert (status, STARTS in notes) == (0, False), notes
    status, _, notes = await run("--thread", thread_id, "--save", "a.html", folder=tmp_path, env=env)
    assert (status, STARTS in notes) == (0, False), notes
    status, output, notes = await run(folder=tmp_path, env=env, question="/threads\nAnd now?\n")
    assert (status, STARTS in notes) == (0, True), "a question does"


async def test_a_conversation_without_a_configured_model_opens_the_team_at_the_first_question(
    tmp_path: Path,
) -> None:
    more = {"MANIPLE_EMBEDDED__ENABLED": "false", "MANIPLE_EMBEDDED__DISCOVER": "false"}
    env = environment(tmp_path, "", **more)
    env = {name: value for name, value in env.items() if not name.startswith("BASIC_")}
    async with on_terminal(folder=tmp_path, env=env) as terminal:
        await terminal.see(PROMPT)
        await terminal.enter("/threads", "no conversations yet")
        assert STARTS not in terminal.text()
        await terminal.enter("1+3=?", "No model is configured")
        assert await terminal.leave() == 0


AWAY = {"coordinator": [{"status": 400, "error": "the scripted outage"}, reply("I am back.")]}


async def test_a_report_that_cannot_be_saved_is_refused_before_the_team_opens(tmp_path: Path) -> None:
    with serving(AWAY) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("Who are you?", folder=tmp_path, env=env)
        assert status == 1 and STARTS in notes
        thread_id = re.search(r"--thread (\w+)", notes)[1]  # type: ignore[index]
        status, _, notes = await run("--thread", thread_id, "--save", "a.md", folder=tmp_path, env=env)
        assert (status, STARTS in notes) == (1, False)
        assert f"--thread {thread_id}" in " ".join(notes.split())
        status, _, notes = await run("Who are you?", "--save", "a.odt", folder=tmp_path, env=env)
        assert (status, STARTS in notes) == (2, False)


@pytest.mark.slow
async def test_the_printed_commands_name_the_retry_and_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "my team.yaml").write_text("team: {}\n")
    config = ("--config", "my team.yaml")
    with serving(AWAY) as server:
        env = environment(tmp_path, server.base_url)
        retry = r"chat --config 'my team\.yaml' --thread (\w+) --retry$"
        _, _, notes = await run("Who are you?", *config, folder=tmp_path, env=env)
        [thread_id] = re.findall(retry, notes, re.M)
        _, _, notes = await run("--continue", *config, folder=tmp_path, env=env)
        assert re.findall(retry, notes, re.M) == [thread_id]
        status, output, notes = await run("--thread", thread_id, "--retry", folder=tmp_path, env=env)
        assert (status, output) == (0, "I am back.\n")
        _, _, notes = await run("--continue", *config, folder=tmp_path, env=env)
        assert "--retry" not in notes, "everything is done"
        _, _, notes = await run("--thread", thread_id, "Hello", *config, folder=tmp_path, env=env)
        assert "--config 'my team.yaml'" in notes.splitlines()[-1]


ALONE = {"manus": [reply("It is four."), reply("STEP FAILED: the site is down.\n\nIt did not answer.")]}


async def test_the_answer_of_an_agent_alone_is_not_shown_as_a_call_too(tmp_path: Path) -> None:
    ending = call("terminate", status="success", result="It is four.")
    with serving({"manus": [call("list_files"), ending]}) as server:
        env = environment(tmp_path, server.base_url)
        status, output, notes = await run("--agent", "manus", "1+3=?", folder=tmp_path, env=env)
        assert (status, output) == (0, "It is four.\n")
        assert "list_files" in notes and "terminate" not in notes and "four" not in notes
        server.reset({"manus": [call("list_files"), ending]})
        async with on_terminal("--agent", "manus", "1+3=?", folder=tmp_path, env=env) as terminal:
            assert await terminal.ended(60) == 0
            shown = terminal.text()
    assert "list_files" in shown and "terminate" not in shown
    assert shown.count("It is four.") == 1


async def test_an_agent_that_answers_alone_has_no_plan_and_its_failure_is_one(tmp_path: Path) -> None:
    with serving(ALONE) as server:
        env = environment(tmp_path, server.base_url)
        status, output, notes = await run("--agent", "manus", "1+3=?", folder=tmp_path, env=env)
        assert (status, output) == (0, "It is four.\n")
        assert "Plan" not in notes and "1+3=?" not in notes
        async with on_terminal("--agent", "manus", "1+3=?", folder=tmp_path, env=env) as terminal:
            assert await terminal.ended(60) == 1
            shown = terminal.text()
    assert "✘ failed" in shown and "✔" not in shown
    assert shown[: shown.index("Not complete")].count("It did not answer.") >= 1
    assert "It did not answer." not in shown[shown.index("Not complete") :]
    assert not re.search(r"^\s*the site is down\.", shown, re.M), "it is shown once, as it was streamed"
