"""What calls of tools showed the members, as results that claims of a report are compared with."""

import json

import pytest
from langchain_core.runnables.config import var_child_runnable_config

from maniple.agents.report import build_source_check
from maniple.agents.task import Task
from maniple.claims.verdict import JudgedClaim
from maniple.scope.call_ledgers import MemoryLedger
from maniple.scope.client_tools import ClientTool
from maniple.scope.run_scope import SCOPE_KEY, RunScope

pytestmark = pytest.mark.anyio
TEXT = "The bridge is 4,127 metres long."


async def judge(tool: str, shown: str, status: str = "success", **arguments: str) -> list[JudgedClaim]:
    """Return the claims of `TEXT` as judged in a run in which a call has returned `shown`."""
    ledger = MemoryLedger()
    await ledger.begin("r", "1", tool, json.dumps(arguments))
    await ledger.end("r", "1", json.dumps({"content": shown, "status": status}))
    function = ClientTool("get_length", "", {"type": "object"})
    scope = RunScope(run_id="r", ledger=ledger, client_tools=[function])
    token = var_child_runnable_config.set({"configurable": {SCOPE_KEY: scope}})
    try:
        check = await build_source_check(Task("How long is it?", "Report", "Write it"))
        return [*(await check.claim_report([f"{TEXT}\n"])).claims]
    finally:
        var_child_runnable_config.reset(token)


async def verdict(tool: str, status: str = "success", **arguments: str) -> list[str]:
    """Return the verdicts on `TEXT` in a run in which a call has returned it."""
    return [one.verdict.kind for one in await judge(tool, TEXT, status, **arguments)]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("python_repl_tool", {"code": "print(text)"}),
        ("bash_tool", {"command": "cat sources/1.md"}),
        ("read_file", {"path": "made/lengths.csv"}),
        ("read_item", {"path": "notes.md"}),
    ],
)
async def test_what_a_program_printed_or_a_file_holds_is_a_result(
    tool: str, arguments: dict[str, str]
) -> None:
    assert await verdict(tool, **arguments) == ["supported"]


@pytest.mark.parametrize(
    "path",
    [
        "sources/1.md",
        "./sources/1-table-1.csv",
        "/workspace/reports/1.md",
        "results/2-coder.md",
        "tool-results/9",
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "read_item"])
async def test_a_record_of_the_team_that_is_read_again_is_no_result(tool: str, path: str) -> None:
    assert await verdict(tool, path=path) == []


@pytest.mark.parametrize("tool", ["get_length", "bridges__find"])
async def test_what_a_function_of_the_client_or_a_server_returned_is_a_result(tool: str) -> None:
    assert await verdict(tool, bridge="Long Bridge") == ["supported"]


async def test_a_failed_call_shows_no_result() -> None:
    assert await verdict("python_repl_tool", status="error", code="print(text)") == []


async def test_a_page_that_was_read_is_a_source_and_no_result() -> None:
    assert await verdict("crawl_tool", url="https://a.test/") == []


async def test_a_figure_that_only_the_sandbox_noted_is_not_marked() -> None:
    [claim] = await judge("bash_tool", "done\n[files written: 4,127 metres.csv]", command="ls")
    assert claim.verdict.kind == "open"
