"""A server that does what servers should not, as a program of its own."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from maniple.errors import McpError
from maniple.mcp import PinStore
from maniple.mcp.pins import Trust
from maniple.mcp.tool_definitions import ToolDefinition
from maniple.shared_texts import TextFolder
from tests.mcp.open_servers import Opened, misbehaving, opened, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bad(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Opened]:
    async with opened(tmp_path, {"bad": misbehaving(tmp_path / "notes", timeout_seconds=20)}) as found:
        yield found


async def test_a_hundred_calls_over_one_session_have_their_own_answers(bad: Opened, tmp_path: Path):
    answers = await asyncio.gather(*(bad.call("bad__echo", text=str(n)) for n in range(100)))
    assert [one.text for one in answers] == [f"echo: {n}" for n in range(100)]
    assert (tmp_path / "notes").read_text() == "started\n"


async def test_a_server_that_exits_during_a_call_is_reported_and_restarted(bad: Opened, tmp_path: Path):
    with pytest.raises(McpError, match="went away during"):
        await bad.call("bad__die")
    await until(lambda: "out of memory" in bad.obstacle("bad"))
    assert bad.list_tools() == []
    with pytest.raises(McpError, match=r"its program ended; .*: out of memory"):
        await bad.call("bad__echo")
    await until(lambda: "bad__echo" in bad.list_tools())
    assert (await bad.call("bad__echo", text="again")).text == "echo: again"
    assert (tmp_path / "notes").read_text() == "started\nstarted\n"


async def test_an_unanswered_call_times_out_and_is_cancelled_on_the_server(tmp_path: Path):
    async with opened(tmp_path, {"bad": misbehaving(timeout_seconds=0.3)}) as bad:
        with pytest.raises(McpError, match=r"within 0\.3 seconds"):
            await bad.call("bad__never")
        assert json.loads((await bad.call("bad__seen")).text) == ["never"]


async def test_a_cancelled_call_is_cancelled_at_the_server(bad: Opened):
    call = asyncio.create_task(bad.call("bad__never"))
    await bad.call("bad__echo")  # it is behind the other in the same pipe
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert json.loads((await bad.call("bad__seen")).text) == ["never"]


async def test_five_megabytes_come_whole(bad: Opened):
    answer = await bad.call("bad__big")
    assert len(answer.text) == 5_000_000


async def test_a_too_large_message_ends_the_server_with_a_reason(bad: Opened):
    with pytest.raises(McpError, match="went away during"):
        await bad.call("bad__huge")
    await until(lambda: "over the limit" in bad.obstacle("bad"))


async def test_a_flood_of_messages_leaves_the_event_loop_to_others(bad: Opened):
    stalls: list[float] = []

    async def tick() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            stalls.append(time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    answer = await bad.call("bad__flood")
    ticking.cancel()
    assert answer.text == "after the flood"
    assert max(stalls) < 0.5


async def test_a_result_that_violates_the_servers_schema_is_plain_text(bad: Opened):
    answer = await bad.call("bad__lie")
    assert answer.text.startswith("four\n{")


async def test_a_servers_sampling_request_is_refused(bad: Opened):
    assert (await bad.call("bad__sample")).text == '"Sampling not supported"'


async def test_lines_that_are_no_messages_are_passed_over(bad: Opened):
    assert (await bad.call("bad__garbage")).text == "after the garbage"


async def test_an_error_result_is_a_failure_with_its_text(bad: Opened):
    answer = await bad.call("bad__refuse")
    assert (answer.is_error, answer.text) == (True, "no such file")


async def test_a_tool_with_an_exponentially_large_schema_is_left_out(bad: Opened):
    state = bad.servers.states()[0]
    assert "longer than" in state.left_out["bomb"]
    assert "bad__bomb" not in bad.list_tools()


async def test_tools_come_and_go_while_the_server_runs(bad: Opened):
    await bad.call("bad__add", text="new one")
    await until(lambda: "bad__new_one" in bad.list_tools())
    assert (await bad.call("bad__new_one", text="x")).text == "new one: x"
    await bad.call("bad__remove", text="lie")
    await until(lambda: "bad__lie" not in bad.list_tools())
    with pytest.raises(McpError, match=r"bad__lie cannot be used: .*server bad"):
        await bad.call("bad__lie")


async def test_a_server_that_keeps_renaming_its_tools_uses_bounded_memory(tmp_path: Path):
    both = {"bad": misbehaving(), "good": misbehaving()}
    async with opened(tmp_path, both) as servers:
        for prefix in "abc":
            await servers.call("bad__rename", text=prefix)
            await until(lambda last=f"bad__{prefix}149": servers.servers.find(last, ["bad"]) is not None)
        with pytest.raises(McpError, match="more than 400 tools"):
            await servers.call("bad__c149")
        assert servers.servers.find("bad__a0", ["bad"]) is None
        assert servers.servers.find("bad__b149", ["bad"]) is not None
        assert len(servers.servers.states()[0].tools) < 400
        assert (await servers.call("good__echo", text="x")).text == "echo: x"
    async with opened(tmp_path, {"good": misbehaving()}) as servers:
        assert "good__echo" in servers.list_tools()


async def test_what_was_listed_before_does_not_take_the_place_of_what_is_listed_now(tmp_path: Path):
    pins = SlowPins(tmp_path / "accepted")
    async with opened(tmp_path, {"bad": misbehaving()}, pins) as bad:
        await until(lambda: "bad__echo" in bad.list_tools())
        pins.is_slow = True
        (tmp_path / "accepted" / "bad.json").touch()  # as if somebody had accepted something
        await until(pins.judging.is_set)
        await bad.call("bad__add", text="fresh")
        pins.go_on.set()
        await until(lambda: pins.judged >= 2)
        await bad.call("bad__echo")
        assert "bad__fresh" in bad.list_tools()


async def test_a_changed_description_turns_the_tool_off_until_it_is_accepted(bad: Opened, tmp_path: Path):
    await bad.call("bad__change")
    await until(lambda: "bad__echo" not in bad.list_tools())
    with pytest.raises(McpError, match=r"it changed since .*: maniple mcp accept bad"):
        await bad.call("bad__echo")
    assert "bad__never" in bad.list_tools()
    tools = [tool.definition for tool in bad.servers.states()[0].tools]
    PinStore(TextFolder(tmp_path / "accepted")).accept("bad", tools)
    await until(lambda: "bad__echo" in bad.list_tools())


async def test_a_tool_that_changes_back_may_be_used_again(bad: Opened):
    await bad.call("bad__change")
    await until(lambda: "bad__echo" not in bad.list_tools())
    await bad.call("bad__change", text="Says it again.")
    await until(lambda: "bad__echo" in bad.list_tools())


async def test_a_server_without_a_program_concerns_itself_alone(tmp_path: Path):
    nobody = {"command": "there-is-no-such-program", "sandbox": "unsafe"}
    async with opened(tmp_path, {"bad": misbehaving(), "nobody": nobody}) as both:
        assert "no program there-is-no-such-program" in both.obstacle("nobody")
        assert (await both.call("bad__echo", text="x")).text == "echo: x"


async def test_a_program_without_a_response_is_reported_with_its_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("maniple.mcp.servers._LIST_SECONDS", 0.5)
    npx = tmp_path / "npx"
    npx.write_text(
        f"#!{sys.executable} -IS\nimport json, sys\nprint('request to registry failed', file=sys.stderr)\n"
        "error = {'code': -32601, 'message': 'no'}\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(input())['id'], 'error': error}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    npx.chmod(0o755)
    allowed = {"command": str(npx), "allow_hosts": ["registry.npmjs.org"]}
    async with opened(tmp_path, {"some": {"command": str(npx)}, "other": allowed}) as servers:
        some, other = servers.obstacle("some"), servers.obstacle("other")
    assert "request to registry failed" in some
    assert "no network: allow_hosts: [registry.npmjs.org]" in some
    assert "request to registry failed" in other
    assert "allow_hosts" not in other


async def test_who_waits_for_no_server_starts_at_once(tmp_path: Path):
    silent = {"command": "cat", "args": ["/dev/zero"], "sandbox": "unsafe"}
    began = time.monotonic()
    async with opened(tmp_path, {"silent": silent}, start_seconds=0.2) as servers:
        assert time.monotonic() - began < 20
        assert servers.list_tools() == []


async def test_nothing_is_left_of_a_program_when_the_servers_are_closed(tmp_path: Path):
    async with opened(tmp_path, {"bad": misbehaving(tmp_path / "notes")}):
        assert _running(str(tmp_path / "notes"))
    assert not _running(str(tmp_path / "notes"))


class SlowPins(PinStore):
    """Takes its time to judge once, when it `is_slow`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TextFolder(folder))
        self.judging, self.go_on = threading.Event(), threading.Event()
        self.is_slow = False
        self.judged = 0

    def judge(self, server: str, tools: Iterable[ToolDefinition], trust: Trust) -> dict[str, str]:
        obstacles = super().judge(server, tools, trust)
        if self.is_slow and not self.judging.is_set():
            self.judging.set()
            self.go_on.wait(30)
        if self.judging.is_set():
            self.judged += 1
        return obstacles


def _running(argument: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if argument in words:
            found.append(process.parent.name)
    return found
