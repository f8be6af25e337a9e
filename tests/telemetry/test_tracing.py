import asyncio
import json
import sys
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import langsmith.utils
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pydantic import ValidationError

from maniple.agents.offers import Offer
from maniple.config.secrets import secrets_of
from maniple.config.service_settings import TelemetrySettings
from maniple.graph import RECURSION_LIMIT, RunOptions, TeamRules
from maniple.redaction import Redactor
from maniple.telemetry.tracing import Tracing, open_tracing
from tests.openai_server import SIMPLE, call, reply
from tests.team import Scripted, scripted_team
from tests.telemetry.collector import attributes, collecting

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"
REDACTOR = Redactor([KEY])


@pytest.fixture
def traced_by_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variable by which LangChain adds a tracer of its own, which would not redact."""
    cached: Any = langsmith.utils.get_env_var
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    cached.cache_clear()
    yield
    monkeypatch.delenv("LANGSMITH_TRACING")
    cached.cache_clear()


async def run(
    team: Scripted,
    tracing: Tracing,
    text: str = f"1+3=? with {KEY}",
    *,
    is_first: bool = True,
    **options: Any,
) -> None:
    config: Any = {
        "configurable": {"thread_id": "t1"},
        "recursion_limit": RECURSION_LIMIT,
        "callbacks": tracing.callbacks("r1", "t1", is_first),
    }
    await team.team.ainvoke({"messages": [HumanMessage(text)]}, config, context=RunOptions(**options))


def settings(**values: Any) -> TelemetrySettings:
    return TelemetrySettings.model_validate(values)


def by_name(spans: list[Span]) -> dict[str, Span]:
    return {span.name: span for span in spans}


async def test_a_run_is_a_tree_of_agents_model_calls_and_tools() -> None:
    with collecting() as collector:
        async with (
            scripted_team(SIMPLE) as team,
            open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as t,
        ):
            await run(team, t)
        spans = collector.spans()
    names = by_name(spans)
    assert {name for name in names if not name.startswith("chat")} == {
        "run",
        "invoke_agent coordinator",
        "invoke_agent planner",
        "invoke_agent supervisor",
        "invoke_agent coder",
        "invoke_agent reporter",
        "execute_tool python_repl_tool",
    }
    root = names["run"]
    assert root.parent_span_id == b""
    assert all(span.trace_id == root.trace_id for span in spans)
    agents = [span for span in spans if span.name.startswith("invoke_agent")]
    assert all(span.parent_span_id == root.span_id for span in agents)
    coder = names["invoke_agent coder"]
    assert names["execute_tool python_repl_tool"].parent_span_id == coder.span_id
    calls = [span for span in spans if span.name == "chat m"]
    assert sum(span.parent_span_id == coder.span_id for span in calls) == 2
    assert all(attributes(one)["gen_ai.usage.input_tokens"] for one in calls)
    assert all(attributes(one)["maniple.run_id"] == "r1" for one in spans)
    assert all(attributes(one)["gen_ai.conversation.id"] == "t1" for one in spans)
    assert all(one.start_time_unix_nano <= one.end_time_unix_nano for one in spans)


async def test_later_attempts_of_a_run_link_to_the_first_also_from_another_process() -> None:
    talk = {"coordinator": [reply("Hello.")]}
    with collecting() as collector:
        for is_first in (True, False, False):
            async with (
                scripted_team(talk) as team,
                open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as tracing,
            ):
                await run(team, tracing, "Hi", is_first=is_first)
        first, *later = [span for span in collector.spans() if span.name == "run"]
    assert [*first.links] == []
    assert len({span.trace_id for span in (first, *later)}) == 3
    for span in later:
        assert [(one.trace_id, one.span_id) for one in span.links] == [(first.trace_id, first.span_id)]


@pytest.mark.parametrize("step_seconds", [-86_400, 86_400])
async def test_a_clock_that_jumps_in_the_middle_of_a_run_bends_no_span(
    monkeypatch: pytest.MonkeyPatch, step_seconds: int
) -> None:
    began = time.time_ns()
    readings = count(began, step_seconds * 10**9)
    with collecting() as collector:
        async with (
            scripted_team(SIMPLE) as team,
            open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as t,
        ):
            for clock in ("time.time_ns", "opentelemetry.sdk.trace.time_ns"):
                monkeypatch.setattr(clock, lambda: next(readings))
            await run(team, t)
            monkeypatch.undo()
        spans = collector.spans()
    root = by_name(spans)["run"]
    assert root.start_time_unix_nano >= began
    assert root.end_time_unix_nano - root.start_time_unix_nano < 60 * 10**9
    for span in spans:
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano


async def test_contents_are_sent_only_if_enabled_and_never_with_secrets() -> None:
    script = {**SIMPLE, "coder": [call("python_repl_tool", code=f"print('{KEY}')"), reply(f"it is {KEY}")]}
    told = {}
    for wanted in (True, False):
        with collecting() as collector:
            given = settings(otlp_endpoint=collector.url, contents=wanted)
            async with scripted_team(script) as team, open_tracing(given, REDACTOR) as tracing:
                await run(team, tracing)
            told[wanted] = collector.everything()
    assert b"print('***')" in told[True]
    assert b"it is ***" in told[True]
    assert KEY.encode() not in told[True] + told[False]
    assert b"print(" not in told[False]


async def test_long_contents_are_cut_in_spans() -> None:
    @tool
    async def read(path: str) -> str:
        """Read."""
        return "x" * 20_000

    script = {**SIMPLE, "coder": [call("read", path="p" * 20_000), reply("4")]}
    with collecting() as collector:
        given = settings(otlp_endpoint=collector.url, contents=True)
        async with (
            scripted_team(script, toolbox=Offer({"coder": [read]})) as team,
            open_tracing(given, REDACTOR) as t,
        ):
            await run(team, t)
        spans = collector.spans()
    texts = [value for span in spans for value in attributes(span).values() if isinstance(value, str)]
    assert max(map(len, texts)) == 8_000


async def test_failures_are_described_without_secrets() -> None:
    @tool
    async def leaking_tool(path: str) -> str:
        """Read."""
        raise ValueError(f"the tool is broken by {KEY}")

    rejected = {"status": 401, "error": f"wrong key {KEY}"}
    script = {**SIMPLE, "coder": [call("leaking_tool", path="x"), rejected]}
    with collecting() as collector:
        async with (
            scripted_team(script, toolbox=Offer({"coder": [leaking_tool]})) as team,
            open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as t,
        ):
            await run(team, t)
        spans, written = collector.spans(), collector.everything()
    failed = {span.name: span.status.message for span in spans if span.status.code == 2}
    assert "the tool is broken by ***" in failed["execute_tool leaking_tool"]
    assert any(name.startswith("chat") for name in failed)
    assert KEY.encode() not in written


async def test_a_cancelled_run_closes_its_spans_and_is_no_failure() -> None:
    script = {**SIMPLE, "coder": [{"hang": True}]}
    with collecting() as collector:
        async with (
            scripted_team(script) as team,
            open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as t,
        ):
            running = asyncio.create_task(run(team, t))
            await asyncio.to_thread(team.server.wait_for, lambda stats: stats["by_role"].get("coder"))
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        spans = by_name(collector.spans())
    assert {"run", "invoke_agent coder"} <= set(spans)
    assert attributes(spans["run"])["maniple.cancelled"] is True
    assert all(span.status.code != 2 for span in spans.values())


async def test_a_pause_is_no_failure() -> None:
    with collecting() as collector:
        async with (
            scripted_team(SIMPLE, rules=TeamRules()) as team,
            open_tracing(settings(otlp_endpoint=collector.url), REDACTOR) as tracing,
        ):
            await run(team, tracing, auto_accepted_plan=False)
        spans = collector.spans()
    assert "run" in by_name(spans)
    assert all(span.status.code != 2 for span in spans)


async def test_headers_and_the_services_name_reach_the_collector() -> None:
    with collecting() as collector:
        given = settings(
            otlp_endpoint=f"{collector.url}/v1/traces",
            otlp_headers="x-api-key=abc%20def, x-other=1",
            service_name="mine",
        )
        async with scripted_team(SIMPLE) as team, open_tracing(given, REDACTOR) as tracing:
            await run(team, tracing)
        _, headers, body = collector.requests[0]
    assert headers["x-api-key"] == "abc def"
    assert b"mine" in body
    assert "abc def" in set(secrets_of(given))


async def test_a_collector_that_is_not_there_costs_a_run_nothing(caplog: pytest.LogCaptureFixture) -> None:
    given = settings(otlp_endpoint="http://127.0.0.1:9")
    async with scripted_team(SIMPLE) as team:
        began = time.monotonic()
        async with open_tracing(given, REDACTOR) as tracing:
            await run(team, tracing)
        assert time.monotonic() - began < 60


@pytest.mark.usefixtures("traced_by_environment")
async def test_langsmith_gets_the_run_with_its_ids_and_without_secrets() -> None:
    script = {**SIMPLE, "coder": [call("python_repl_tool", code=f"boom {KEY}"), reply(f"it is {KEY}")]}
    with collecting() as collector:
        given = settings(
            langsmith={"enabled": "true", "api_key": "ls-key", "endpoint": collector.url, "project": "p1"}
        )
        async with scripted_team(script) as team, open_tracing(given, REDACTOR) as tracing:
            await run(team, tracing)
        written, headers = collector.everything(), [headers for _, headers, _ in collector.requests]
    assert KEY.encode() not in written
    assert b"it is ***" in written
    assert b'"run_id":"r1"' in written.replace(b'": "', b'":"')
    assert b'"thread_id":"t1"' in written.replace(b'": "', b'":"')
    assert b'"session_name":"p1"' in written.replace(b'": "', b'":"')
    assert {one.get("x-api-key") or one.get("X-Api-Key") for one in headers} == {"ls-key"}


@pytest.mark.usefixtures("traced_by_environment")
async def test_what_langchain_traces_by_itself_outside_of_a_run_is_redacted_too() -> None:
    with collecting() as collector:
        given = settings(langsmith={"enabled": True, "api_key": "ls-key", "endpoint": collector.url})
        async with open_tracing(given, REDACTOR):
            await RunnableLambda(lambda words: f"{words}!").ainvoke(f"outside {KEY}")
        written = collector.everything()
    assert b"outside ***" in written
    assert KEY.encode() not in written


async def test_a_missing_package_is_reported_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    async with open_tracing(settings(otlp_endpoint="http://127.0.0.1:9"), REDACTOR) as tracing:
        assert tracing.callbacks("r", "t", True) == []
        assert "pip install -e '.[tracing]'" in tracing.notices[0]


async def test_nothing_is_traced_unless_requested() -> None:
    async with open_tracing(TelemetrySettings(), REDACTOR) as tracing:
        assert tracing.callbacks("r", "t", True) == []
        assert tracing.notices == ()


def test_langsmith_without_a_key_is_refused_with_words() -> None:
    with pytest.raises(ValidationError, match="LANGSMITH_API_KEY"):
        settings(langsmith={"enabled": True})


def test_settings_read_as_the_libraries_own_variables_do() -> None:
    given = settings(otlp_headers="Authorization=Bearer%20abcdefgh,b=c")
    shown = {name: secret.get_secret_value() for name, secret in given.otlp_headers.items()}
    assert shown == {"Authorization": "Bearer abcdefgh", "b": "c"}
    assert "abcdefgh" in set(secrets_of(given))
    assert "abcdefgh" not in json.dumps(given.model_dump(mode="json"))
