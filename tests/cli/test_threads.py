"""Conversations that are kept, and gone on with by another program."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import PROMPT, environment, on_terminal, run
from tests.openai_server import OpenAIServer, reply, serving

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


async def test_a_conversation_goes_on_by_its_id_and_knows_what_was_said(
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
async def test_an_unknown_id_is_said_with_words(server: OpenAIServer, tmp_path: Path, name: str) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--thread", name, "And now?", folder=tmp_path, env=env)
    assert (status, output) == (2, "")
    assert f"There is no conversation '{name}'." in notes
    assert "Traceback" not in notes and server.requests == []


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
