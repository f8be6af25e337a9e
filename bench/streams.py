"""CPU and time of runs, from 1 to 200 concurrent ones, beside a bare and a lean server."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.load import (
    BARE,
    HTTP_PROXY,
    KINDS,
    LEAN,
    NO_PROXY,
    TEAM,
    LoadResult,
    ServersUnderLoad,
    compare_cpu,
    floor_seconds,
    servers_under_load,
)
from bench.model_server import IMMEDIATE, REALISTIC
from bench.plot import Line, Panel, write_svg
from tests.openai_server import call, reply

CPU_ROUNDS = 15
ALONE_ROUNDS = 3
STREAMS = (1, 8, 32, 64, 128, 200)
PLOT = Path(__file__).parents[1] / "docs" / "images" / "load.svg"


_TEXT = "The sum of one and three is four because three follows two and one more step leads"


def words(tokens: int) -> str:
    """Return a text of so many tokens."""
    text = _TEXT.split()
    return " ".join(text[at % len(text)] for at in range(tokens))


def _plan(tokens: int) -> str:
    steps = [
        {"agent_name": "coder", "title": "Compute", "description": words(tokens // 2)},
        {"agent_name": "reporter", "title": "Report", "description": words(tokens // 4)},
    ]
    return json.dumps({"thought": words(tokens // 4), "title": "1 + 3", "steps": steps})


SCRIPT = {
    "coordinator": [call("handoff_to_planner", task_title="1 + 3", locale="en")],
    "planner": [reply(_plan(240))],
    "supervisor": [reply(json.dumps({"next": name})) for name in ("coder", "reporter", "FINISH")],
    "coder": [
        call("python_repl_tool", code="\n".join(f"value_{n} = 1 + 3" for n in range(16)) + "\nprint(1 + 3)"),
        reply(words(90)),
    ],
    "reporter": [reply(words(330))],
    "other": [reply("OK")],
}
"""Five calls and about 750 tokens; the bare and the lean server also ask the supervisor three times."""
ROLES = {
    TEAM: ("coordinator", "planner", "coder", "reporter"),
    BARE: ("coordinator", "planner", "supervisor", "coder", "reporter"),
    LEAN: ("coordinator", "planner", "supervisor", "coder", "reporter"),
}


def limits_for(streams: int) -> dict[str, str]:
    """Return settings with which so many runs of the team work concurrently."""
    return {"MANIPLE_SERVER__MAX_RUNS": str(streams), "MANIPLE_SANDBOX__CONCURRENT": str(streams)}


async def measure_cpu(rounds: int = CPU_ROUNDS) -> dict[str, float]:
    """Return the CPU of a run: the model writes without delay, at 1 and at 8 streams, then at a real pace."""
    figures: dict[str, float] = {}
    with servers_under_load(SCRIPT, *KINDS, NO_PROXY, HTTP_PROXY) as servers:
        for streams in (1, 8):
            spent = await compare_cpu(servers, streams, rounds if streams == 1 else max(rounds // 4, 1))
            figures |= {f"cpu_{streams}_{kind}_ms": round(ms, 1) for kind, ms in spent.items()}
            figures[f"cpu_{streams}_of_bare"] = round(spent[TEAM] / spent[BARE], 2)
            for kind in (NO_PROXY, HTTP_PROXY):
                figures[f"cpu_{streams}_{kind}_of_bare"] = round(spent[kind] / spent[BARE], 2)
        spent = {kind: (await _realistic(servers, kind, 1)).cpu_ms for kind in (TEAM, BARE)}
        figures |= {f"cpu_realistic_{kind}_ms": round(ms, 1) for kind, ms in spent.items()}
        figures["cpu_realistic_of_bare"] = round(spent[TEAM] / spent[BARE], 2)
    return figures


async def measure_code() -> dict[str, float]:
    """Return the times of 64 runs that start together, with the default number of sandboxes."""
    with servers_under_load(SCRIPT, TEAM) as servers:
        result = await _realistic(servers, TEAM, 64)
    return {
        "code_64_p50_s": round(result.seconds(50), 1),
        "code_64_p95_s": round(result.seconds(95), 1),
        "code_64_cpu_ms": round(result.cpu_ms, 1),
    }


async def measure(streams: Sequence[int] = STREAMS, plot: Path = PLOT) -> dict[str, float]:
    """Return the figures of concurrent realistic streams, and draw how they grow."""
    figures: dict[str, float] = {}
    results: dict[str, list[LoadResult]] = {kind: [] for kind in KINDS}
    with servers_under_load(SCRIPT, settings=limits_for(max(streams))) as servers:
        for number in streams:
            for kind in KINDS:
                print(f"  {number} streams, {kind}", file=sys.stderr, flush=True)
                result = await _realistic(servers, kind, number)
                results[kind].append(result)
                figures |= _figures(kind, number, result)
    floors = {kind: floor_seconds(SCRIPT, ROLES[kind], REALISTIC) for kind in KINDS}
    figures |= {f"floor_{kind}_s": round(seconds, 2) for kind, seconds in floors.items()}
    first = results[TEAM][0]
    if streams[0] == 1:
        figures["alone_over_model_ms"] = round(1000 * (first.seconds(50) - floors[TEAM]))
    figures["model_server_share"] = round(max(one.model_share for of in results.values() for one in of), 2)
    figures["client_share"] = round(max(one.client_share for of in results.values() for one in of), 2)
    _draw(streams, results, plot)
    return figures


async def _realistic(servers: ServersUnderLoad, kind: str, streams: int) -> LoadResult:
    servers.set_pace(IMMEDIATE)
    await servers.load(kind, 1)  # what is loaded at first use is not what is measured
    servers.set_pace(REALISTIC)
    rounds = ALONE_ROUNDS if streams == 1 else 1
    return LoadResult.combine([await servers.load(kind, streams) for _ in range(rounds)])


def _figures(kind: str, streams: int, result: LoadResult) -> dict[str, float]:
    name = f"streams_{streams}" + ("" if kind == TEAM else f"_{kind}")
    return {
        f"{name}_p50_s": round(result.seconds(50), 2),
        f"{name}_p95_s": round(result.seconds(95), 2),
        f"{name}_cpu_ms": round(result.cpu_ms, 1),
        f"{name}_first_p95_s": round(result.first_event_seconds(95), 2),
        f"{name}_first_last_s": round(result.first_event_seconds(100), 2),
    }


def _draw(streams: Sequence[int], results: dict[str, list[LoadResult]], plot: Path) -> None:
    cpu = {kind: [one.cpu_ms for one in of] for kind, of in results.items()}
    p50 = {kind: [one.seconds(50) for one in of] for kind, of in results.items()}
    first = {kind: [one.first_event_seconds(100) for one in of] for kind, of in results.items()}
    panels = [
        Panel(title, [Line(kind, tuple(zip(streams, values, strict=True))) for kind, values in of.items()])
        for title, of in (
            ("CPU of a run, milliseconds", cpu),
            ("Median time of a run, seconds", p50),
            ("Last of the first events, seconds", first),
        )
    ]
    write_svg(plot, panels, "concurrent streams")
