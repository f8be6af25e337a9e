import asyncio
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from typer.testing import CliRunner

from maniple.cli.app import app
from tests.cli.processes import MAIN, environment, run, start
from tests.cli.scripts import REPORT
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as running:
        yield running


async def test_help_teaches_with_examples(tmp_path: Path) -> None:
    status, output, _ = await run("--help", folder=tmp_path, env=environment(tmp_path, ""))
    assert status == 0
    assert 'maniple chat "1+3=?"' in output and "--search-first" in output and "Exit status" in output


COMMANDS = [
    "chat",
    "crawl",
    "serve",
    "doctor",
    "keys add",
    "keys forget",
    "keys list",
    "keys revoke",
    "db check",
    "db vacuum",
    "db export",
    "db backup",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_help_has_examples_its_exit_status_and_how_to_configure(command: str) -> None:
    text = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert f"maniple {command}" in text.partition("Examples:")[2]
    assert "Exit status: 0 " in text and "conf.yaml" in text and ".env" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_modes_of_browse_are_described_at_the_documented_place() -> None:
    text, _, options = CliRunner().invoke(app, ["browse", "--help"]).output.partition("Options:")
    assert "Modes: " in text and "see above" in options


@pytest.mark.parametrize("command", ["chat hello", "browse hello", "serve", "mcp serve"])
def test_an_unknown_tool_under_approval_ends_each_command_that_opens_the_team(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "conf.yaml").write_text("runs:\n  approval: [bash_tol]\n")
    ended = CliRunner().invoke(app, [*command.split(), "--config", str(tmp_path / "conf.yaml")])
    assert ended.exit_code == 2
    assert "conf.yaml, line 2: runs.approval.0: " in ended.output and "bash_tool" in ended.output


async def test_the_env_file_beside_the_settings_is_read(server: OpenAIServer, tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "conf.yaml").write_text("search:\n  max_results: 3\n")
    (team / ".env").write_text("BASIC_MODEL=beside\n")
    env = environment(tmp_path, server.base_url)
    del env["BASIC_MODEL"]
    _, _, notes = await run("--config", "team/conf.yaml", "hi", folder=tmp_path, env=env)
    assert f"beside at {server.base_url}" in notes


async def test_a_question_is_answered_once_with_only_the_report_on_the_output(
    server: OpenAIServer, tmp_path: Path
) -> None:
    status, output, notes = await run("1+3=?", folder=tmp_path, env=environment(tmp_path, server.base_url))

    assert (status, output) == (0, REPORT)
    lines = notes.splitlines()
    assert any(f"scripted at {server.base_url}" in line for line in lines)
    assert any("search.providers" in line for line in lines)
    assert "Plan: 1 + 3" in lines and "  ✔  2 reporter  Report" in lines
    assert re.fullmatch(r"✔ completed · \d+\.\d s · \d model calls · [\d,]+ tokens \(.*\)", lines[-2])
    assert "\x1b" not in output + notes


@pytest.mark.parametrize("arguments", [(), ("-",)])
async def test_a_question_comes_from_the_input(
    server: OpenAIServer, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, _ = await run(*arguments, folder=tmp_path, env=env, question="what is\n1+3?\n")

    assert (status, output) == (0, REPORT)
    assert "what is\n1+3?" in json.dumps(server.requests[0], ensure_ascii=False).replace("\\n", "\n")


async def test_piped_commands_are_run_and_the_text_between_them_is_sent(tmp_path: Path) -> None:
    with serving({**SIMPLE, "coordinator": [reply("First."), reply("Second.")]}) as server:
        env = environment(tmp_path, server.base_url)
        entered = "/help\nWhat is\n/etc for?\n/sources\n/help me\n/save! a.md\n/quit\nMore?\n"
        status, output, _ = await run(folder=tmp_path, env=env, question=entered)
        questions = [request["messages"][-1]["content"] for request in server.requests]
    assert status == 0
    assert "/help " in output and output.index("First.") < output.index("Second.")
    assert ["What is\n/etc for?" in questions[0], "/help me" in questions[1]] == [True, True]
    assert len(questions) == 2
    assert (tmp_path / "a.md").read_text() == "Second.\n"


async def test_a_text_that_is_named_as_the_question_holds_no_commands(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    await run("-", folder=tmp_path, env=env, question="What does this do?\n/help\n")
    assert "/help" in server.requests[0]["messages"][-1]["content"]


async def test_json_prints_every_event_as_a_line_and_nothing_else(
    server: OpenAIServer, tmp_path: Path
) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--json", "1+3=?", folder=tmp_path, env=env)
    events = [json.loads(line) for line in output.splitlines()]

    assert status == 0
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event"], events[-1]["event"]) == ("run", "final_session_state")
    assert {"event": "run_status", "data": {"status": "completed"}}.items() <= events[-3].items()
    assert "scripted at" in notes


async def test_a_failed_run_prints_the_reason_and_exits_with_1(tmp_path: Path) -> None:
    with serving({"coordinator": [{"status": 401, "error": "Incorrect API key."}]}) as server:
        status, output, notes = await run("hi", folder=tmp_path, env=environment(tmp_path, server.base_url))

    assert (status, output) == (1, "")
    assert "BASIC_API_KEY" in notes and "✘ failed" in notes
    assert "sk-canary" not in notes


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (("--team", "codr", "hi"), {}, "Did you mean coder?"),
        (("--config", "none.yaml", "hi"), {}, "none.yaml"),
        (("--no-such-option",), {}, "No such option"),
        (("  ",), {}, "the question is empty"),
        (("--continue", "hi"), {}, "--continue"),
        (("hi",), {"MANIPLE_SEARCH__MAX_RESULTS": "many"}, "MANIPLE_SEARCH__MAX_RESULTS"),
    ],
)
async def test_wrong_usage_and_settings_are_sentences_and_exit_with_2(
    tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], words: str
) -> None:
    env = environment(tmp_path, "http://127.0.0.1:1/v1", **settings)
    status, output, notes = await run(*arguments, folder=tmp_path, env=env)

    assert (status, output) == (2, "")
    assert words in notes
    assert "Traceback" not in notes


async def test_a_plan_that_cannot_be_reviewed_exits_with_3(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path, server.base_url)
    status, output, notes = await run("--review", "1+3=?", folder=tmp_path, env=env)

    assert (status, output) == (3, "")
    assert "☐  1 coder     Compute" in notes and "? waiting" in notes


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
async def test_a_signal_ends_a_hanging_run_with_its_status(tmp_path: Path, name: str, status: int) -> None:
    with serving({"coordinator": [{"hang": True}]}) as server:
        process = await start(
            MAIN, "--json", "hi", folder=tmp_path, env=environment(tmp_path, server.base_url)
        )
        try:
            await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 1, 100)
            process.send_signal(getattr(signal, name))
            async with asyncio.timeout(60):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)

    assert process.returncode == status
    if name == "SIGINT":
        statuses = [json.loads(line) for line in output.splitlines() if b'"run_status"' in line]
        assert [event["data"] for event in statuses] == [{"status": "cancelled"}]


async def test_a_reader_that_leaves_ends_the_run_quietly(tmp_path: Path) -> None:
    slow = reply("word " * 200, delay_seconds=0.05)
    with serving({**SIMPLE, "coordinator": [slow]}) as server:
        env = environment(tmp_path, server.base_url)
        process = await start(MAIN, "--json", "hi", folder=tmp_path, env=env)
        assert process.stdout and process.stderr
        try:
            async with asyncio.timeout(60):
                await process.stdout.readline()
                process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
                notes = await process.stderr.read()
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    assert process.returncode == 141
    assert b"Traceback" not in notes and b"Broken" not in notes


async def test_an_answer_that_broke_off_is_void_and_only_the_new_one_is_the_output(tmp_path: Path) -> None:
    broken, right = reply("It is five, I think.", cut_after=3), reply("It is four.", reasoning="Well.")
    with serving({**SIMPLE, "reporter": [broken, right]}) as server:
        env = environment(tmp_path, server.base_url)
        status, output, notes = await run("1+3=?", folder=tmp_path, env=env)

    assert (status, output) == (0, "It is four.\n")
    assert "answer broke off" in notes


async def test_an_answer_that_goes_on_after_a_break_is_whole(tmp_path: Path) -> None:
    whole = "It is four, I am sure."
    replies = [reply(whole, reasoning="Well.", cut_after=4), reply(whole, reasoning="Well.")]
    with serving({**SIMPLE, "reporter": replies}) as server:
        env = environment(tmp_path, server.base_url)
        status, output, notes = await run("1+3=?", folder=tmp_path, env=env)

    assert (status, output) == (0, f"{whole}\n")
    assert "broke off" not in notes


async def test_files_that_the_team_wrote_are_listed_and_stored(tmp_path: Path) -> None:
    writes = call("python_repl_tool", code="open('table.csv', 'w').write('1,2\\n' * 500)")
    with serving({**SIMPLE, "coder": [writes, reply("Written.")]}) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("1+3=?", folder=tmp_path, env=env)

    (workspace,) = (tmp_path / "data" / "workspaces").glob("[!.]*")
    assert status == 0
    assert notes.splitlines()[-3:-1] == [f"Files in {workspace}:", "  table.csv  2.0 kB"]
    assert (workspace / "table.csv").stat().st_size == 2000


async def test_a_workspace_in_which_nothing_is_does_not_outlive_the_session(
    server: OpenAIServer, tmp_path: Path
) -> None:
    status, _, notes = await run("1+3=?", folder=tmp_path, env=environment(tmp_path, server.base_url))

    assert status == 0 and "Files in" not in notes
    assert list((tmp_path / "data" / "workspaces").glob("[!.]*")) == []


@pytest.fixture
def full() -> Iterator[BinaryIO]:
    with Path("/dev/full").open("wb") as device:
        yield device


@pytest.mark.parametrize("arguments", [("1+3=?",), ("--json", "1+3=?"), ("--help",)])
async def test_an_unwritable_output_is_reported_in_a_sentence(
    server: OpenAIServer, tmp_path: Path, full: BinaryIO, arguments: tuple[str, ...]
) -> None:
    env = environment(tmp_path, server.base_url)
    process = await start(MAIN, *arguments, folder=tmp_path, env=env, stdout=full)
    try:
        async with asyncio.timeout(60):
            _, written = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    notes = written.decode()

    assert process.returncode == 1
    assert "No space left" in notes.splitlines()[-1]
    assert "Traceback" not in notes and "Exception ignored" not in notes
    assert ("The answer is **4**." in notes) == (arguments == ("1+3=?",)), "the report is not lost"


@pytest.mark.parametrize(
    "option",
    ["--deep", "--depth=deep", "--review", "--team=coder", "--agent=manus", "--style=brief", "--effort=low"],
)
@pytest.mark.parametrize(
    "others", [["--continue"], ["--thread=1a2b", "--retry"], ["--thread=1a2b", "--save=r.pdf"]]
)
def test_an_option_of_a_question_is_refused_where_none_is_asked(option: str, others: list[str]) -> None:
    result = CliRunner().invoke(app, ["chat", option, *others])
    assert result.exit_code == 2
    assert option.partition("=")[0] in result.output
