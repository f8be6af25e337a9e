"""The benchmarks under load run at small sizes, and count what they say; no figure is checked."""

import json

import httpx
import pytest

from bench.__main__ import AT_LEAST, AT_MOST, PARTS, check_limit, main
from bench.endurance import measure_persistence
from bench.load import (
    BARE,
    LEAN,
    TEAM,
    LoadResult,
    RunTimes,
    ask,
    floor_seconds,
    model_process,
    percentile_of,
    servers_under_load,
)
from bench.long_run import measure as measure_long_run
from bench.model_server import IMMEDIATE, REALISTIC, Pace, count_tokens
from bench.plot import Line, Panel, write_svg
from bench.protocol_cpu import PROTOCOLS
from bench.protocol_cpu import measure as measure_protocols
from bench.streams import ROLES, SCRIPT, measure, measure_code, measure_cpu
from bench.tool_runs import measure_browser, measure_search
from tests.openai_server import SIMPLE, call, reply, serving

pytestmark = pytest.mark.anyio


def test_the_model_writes_each_token_once_and_tools_with_their_arguments():
    script = {"coder": [call("python_repl_tool", code="print(1 + 3)"), reply("It is four.")]}
    with model_process(script) as (url, _):
        first, second, third = (answer(url, "coder") for _ in range(3))
    (started, *arguments) = [delta["tool_calls"][0] for delta in first if delta.get("tool_calls")]
    assert started["function"]["name"] == "python_repl_tool"
    assert json.loads("".join(one["function"]["arguments"] for one in arguments)) == {"code": "print(1 + 3)"}
    assert text_of(second) == "It is four."
    assert text_of(third) == "It is four.", "the last reply repeats"
    assert [one["content"] for one in second if "content" in one] == ["It", " is", " four."]


def test_a_paced_answer_has_the_same_tokens():
    with model_process({"coder": [reply("one two three")]}) as (url, _):
        httpx.post(
            f"{url.removesuffix('/v1')}/admin/pace", json={"first_seconds": 0.01, "token_seconds": 0.001}
        )
        assert text_of(answer(url, "coder")) == "one two three"


def test_the_conversation_and_the_controls_of_a_page_are_filled_in():
    script = {"browser": [call("browser_use", action="click_element", index="index of Buy", url="/{run}")]}
    with model_process(script) as (url, _):
        deltas = answer(url, "browser", "#run=r7 [3]<button>Pay [12]<button>Buy")
    pieces = [one["tool_calls"][0]["function"]["arguments"] for one in deltas if one.get("tool_calls")]
    assert json.loads("".join(pieces)) == {"action": "click_element", "index": 12, "url": "/r7"}


def answer(url: str, role: str, question: str = "x") -> list[dict]:
    messages = [{"role": "system", "content": f"You are the {role}."}, {"role": "user", "content": question}]
    body = {"model": "m", "stream": True, "messages": messages}
    lines = httpx.post(f"{url}/chat/completions", json=body).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def text_of(deltas: list[dict]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas)


def test_the_floor_is_the_models_own_time():
    script = {"planner": [reply("one two three")], "reporter": [reply("one")]}
    assert count_tokens(script["planner"]) == [3]
    assert floor_seconds(script, ("planner", "reporter"), Pace(1.0, 0.25)) == 1.5 + 1.0
    assert 4.5 < floor_seconds(SCRIPT, ROLES[TEAM], REALISTIC) < 5
    assert floor_seconds(SCRIPT, ROLES[BARE], IMMEDIATE) == 0


def test_percentiles_are_by_nearest_rank():
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile_of(values, one) for one in (0, 50, 95, 100)] == [1.0, 3.0, 5.0, 5.0]
    result = LoadResult([RunTimes(0.1, value) for value in values], 0.5, 0, 0)
    assert (result.cpu_ms, result.seconds(50), result.first_event_seconds(100)) == (100.0, 3.0, 0.1)


@pytest.mark.slow
async def test_all_three_servers_make_their_calls():
    with servers_under_load(SCRIPT) as servers:
        for kind in (TEAM, BARE, LEAN):
            result = await servers.load(kind, 2)
            assert len(result.runs) == 2
            assert result.cpu_seconds > 0
            assert all(0 < run.first_event <= run.total for run in result.runs)


@pytest.mark.slow
async def test_a_run_that_fails_is_an_error():
    script = {**SIMPLE, "reporter": [{"status": 500}], "planner": [{"status": 500}]}
    with serving(script) as model:
        with servers_under_load(SIMPLE, TEAM, settings={"BASIC_BASE_URL": model.base_url}) as servers:
            with pytest.raises(RuntimeError):
                await ask(servers.urls[TEAM], "1+3=?")


@pytest.mark.slow
async def test_streams_are_compared_and_drawn(tmp_path):
    figures = await measure((1, 2), tmp_path / "load.svg")
    assert {"alone_over_model_ms", "streams_2_p50_s", "streams_2_bare_cpu_ms", "model_server_share"} <= {
        *figures
    }
    assert figures["streams_1_lean_p50_s"] >= figures["floor_lean_s"]
    assert (tmp_path / "load.svg").read_text().count("<polyline") == 9


@pytest.mark.slow
async def test_cpu_is_compared_at_one_and_at_eight_streams():
    figures = await measure_cpu(rounds=1)
    assert {"cpu_1_of_bare", "cpu_8_of_bare", "cpu_8_lean_ms"} <= {*figures}


@pytest.mark.slow
@pytest.mark.parametrize("measured", [measure_browser, measure_search])
async def test_runs_with_tools_are_compared(measured):
    figures = await measured(1, 2)
    assert all(value > 0 for value in figures.values())


@pytest.mark.slow
async def test_growth_and_persistence_are_measured():
    assert "runs_1000_growth_descriptors" in await measure_long_run(8, 8)
    with serving(SIMPLE) as model:
        assert (await measure_persistence(model.base_url, 2))["persistence_run_ms"] > 0


@pytest.mark.slow
async def test_a_run_of_each_protocol_completes_and_is_compared_with_the_native_one():
    figures = await measure_protocols(1, warm_up=0)
    lines = {name for name in figures if name.endswith("_lines")}
    assert min(figures[name] for name in lines) > 0
    bounds = {name for name in figures if name.endswith(("_low", "_high"))}
    ratios = figures.keys() - {"native_cpu_ms"} - lines - bounds
    assert len(bounds) == 2 * len(ratios)
    assert ratios == {f"{name}_cpu_of_native" for name in [*PROTOCOLS][1:]}
    assert ratios <= AT_MOST.keys()


@pytest.mark.slow
async def test_sixty_four_runs_with_code_complete():
    assert (await measure_code())["code_64_p50_s"] > 4


def test_limits_are_checked(capsys):
    assert check_limit("cpu_1_of_bare", AT_MOST["cpu_1_of_bare"])[1]
    assert not check_limit("cpu_1_of_bare", AT_MOST["cpu_1_of_bare"] + 0.01)[1]
    assert not check_limit("extraction_f1", AT_LEAST["extraction_f1"] - 0.01)[1]
    assert check_limit("without_limit", 1e9) == ("", True)
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in PARTS)
    with pytest.raises(SystemExit):
        main(["no_such_part"])


def test_a_chart_has_a_line_for_each_series(tmp_path):
    panel = Panel("CPU <ms>", [Line("a", ((1, 0.5), (8, 20.0))), Line("b", ((1, 3.0), (8, 4.0)))])
    write_svg(tmp_path / "chart.svg", [panel], "streams")
    drawn = (tmp_path / "chart.svg").read_text()
    assert drawn.count("<polyline") == 2
    assert "CPU &lt;ms&gt;" in drawn
