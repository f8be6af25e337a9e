import pytest
from prometheus_client.parser import text_string_to_metric_families

from maniple.events import (
    ErrorOccurred,
    Event,
    RunStarted,
    RunStatusChanged,
    SessionState,
    ToolReturned,
    UsageReported,
)
from maniple.telemetry.metrics import Metrics
from tests.openai_server import SIMPLE
from tests.team import scripted_team


def figures(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(metrics.text()[0].decode())
    samples = [one for family in families for one in family.samples]
    return {
        "|".join((one.name.removeprefix("maniple_"), *dict(sorted(one.labels.items())).values())): one.value
        for one in samples
        if one.name.startswith("maniple_") and not one.name.endswith(("_created", "_bucket"))
    }


def tell(metrics: Metrics, run_id: str, *events: Event) -> None:
    for event in events:
        metrics.observe(event, run_id)


STARTED = RunStarted(run_id="r", thread_id="t")
ENDED = SessionState(messages=[])


def usage(model: str) -> UsageReported:
    return UsageReported(agent_name="coder", model=model, input_tokens=7, output_tokens=3, seconds=0.5)


def test_runs_are_counted_by_how_they_end() -> None:
    metrics = Metrics()
    for run_id in "ab":
        metrics.queue(run_id)
        metrics.begin(run_id)
    tell(metrics, "a", STARTED)
    tell(metrics, "b", STARTED, RunStatusChanged(status="failed"))
    assert figures(metrics)["runs_running"] == 2
    tell(metrics, "b", ENDED)
    tell(metrics, "a", RunStatusChanged(status="completed"), ENDED)
    now = figures(metrics)
    assert now["runs_started_total"] == 2
    assert (now["runs_ended_total|failed"], now["runs_ended_total|completed"]) == (1, 1)
    assert now["run_seconds_count|completed"] == 1
    assert now["runs_running"] == 0


def test_a_run_that_works_when_the_program_stops_ends_as_unknown_and_one_that_waits_does_not() -> None:
    metrics = Metrics()
    for run_id in "ab":
        metrics.queue(run_id)
    metrics.begin("a")
    assert (figures(metrics)["runs_running"], figures(metrics)["runs_queued"]) == (1, 1)
    metrics.forget("a")
    metrics.forget("b")
    now = figures(metrics)
    assert (now["runs_running"], now["runs_queued"], now["runs_ended_total|unknown"]) == (0, 0, 1)


def test_a_run_that_ends_before_its_turn_is_counted_as_ended_and_its_wait_as_no_work() -> None:
    metrics = Metrics()
    metrics.queue("a")
    tell(metrics, "a", STARTED)
    assert (figures(metrics)["runs_running"], figures(metrics)["runs_queued"]) == (0, 1)
    tell(metrics, "a", RunStatusChanged(status="cancelled"), ENDED)
    now = figures(metrics)
    assert (now["runs_queued"], now["runs_started_total"], now["runs_ended_total|cancelled"]) == (0, 0, 1)
    assert "run_seconds_count|cancelled" not in now


def test_calls_tokens_tools_and_errors_are_counted() -> None:
    metrics = Metrics()
    fine = ToolReturned(tool_call_id="1", tool_name="bash_tool", tool_result="4")
    bad = fine.model_copy(update={"tool_result": "bash_tool failed: no"})
    error = ErrorOccurred(code="model_auth", message="x", agent_name=None, retryable=False)
    tell(metrics, "a", usage("m"), usage("m"), fine, fine, bad, error)
    now = figures(metrics)
    assert now["model_calls_total|coder|m"] == 2
    assert now["model_tokens_total|coder|input|m"] == 14
    assert now["model_tokens_total|coder|output|m"] == 6
    assert now["tool_calls_total|returned|bash_tool"] == 2
    assert now["tool_calls_total|failed|bash_tool"] == 1
    assert now["run_errors_total|model_auth"] == 1


def test_names_without_number_become_other() -> None:
    metrics = Metrics()
    for number in range(200):
        tell(metrics, "a", usage(f"model-{number}"))
    calls = {name: value for name, value in figures(metrics).items() if name.startswith("model_calls_total")}
    assert len(calls) == 51
    assert calls["model_calls_total|coder|other"] == 150


def test_gauges_follow_the_readers_and_the_store() -> None:
    metrics = Metrics()
    with metrics.client(), metrics.storing():
        assert figures(metrics)["stream_clients"] == 1
    now = figures(metrics)
    assert (now["stream_clients"], now["store_append_seconds_count"]) == (0, 1)


def test_two_registries_are_independent() -> None:
    one, other = Metrics(), Metrics()
    one.begin("a")
    assert figures(other)["runs_started_total"] == 0


def test_the_text_has_the_requested_format() -> None:
    text, media_type = Metrics().text("application/openmetrics-text; version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    text, media_type = Metrics().text()
    assert media_type.startswith("text/plain")
    assert b"process_resident_memory_bytes" in text


@pytest.mark.anyio
async def test_a_whole_run_is_counted_by_one_line() -> None:
    from langchain_core.messages import HumanMessage

    from maniple.runs.turn import stream_run

    metrics = Metrics()
    async with scripted_team(SIMPLE) as team:
        async for event in stream_run(team.team, [HumanMessage("1+3=?")], run_id="r"):
            metrics.observe(event, "r")
    now = figures(metrics)
    assert now["runs_ended_total|completed"] == 1
    assert now["tool_calls_total|returned|python_repl_tool"] == 1
    assert now["model_calls_total|coder|m"] == 2
    assert now["runs_running"] == 0
