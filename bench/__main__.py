"""The figures of `docs/figures.md`: `python -m bench [PART …]`. Only loopback is used.

Without parts all are measured; `--list` names them with the time that each takes. Each figure is printed with
its limit as soon as it is there, and the exit status says whether all hold. Progress goes to stderr.
"""

import argparse
import asyncio
import inspect
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench import (
    browser_actions,
    browser_state,
    crawl,
    endurance,
    everyday,
    extraction,
    folder_search,
    framework,
    live,
    long_run,
    page,
    plan_graph,
    protocol_cpu,
    queue,
    replay,
    sandbox,
    server,
    streams,
    tool_runs,
)

AT_MOST = {
    "model_calls": 4,
    "prompt_tokens": 2_100,
    "first_event_ms": 10,
    "ratio": 1.5,
    "modules": 100,
    "ready_s": 1.5,
    "memory_ready_mb": 140,
    "growth_mb_in_50_runs": 5,
    "persistence_ms": 25,
    "sandbox_start_ratio": 3,
    "sandbox_first_answer_ratio": 3,
    "warm_call_over_exec_ms": 5,
    "sandboxes_32_mb": 1_200,
    "crawl_20_ratio": 3,
    "crawl_20_pdf_ratio": 3,
    "crawl_5mb_mb": 100,
    "crawl_5mb_reader_mb": 1_000,
    "browser_click_ratio": 3,
    "browser_type_ratio": 3,
    "browser_contexts_20_mb": 1_500,
    "state_ordinary_ms": 150,
    "state_3000_controls_ms": 600,
    "state_ordinary_tokens": 4_000,
    "first_small_talk_ms": 300,
    "first_plan_text_ms": 300,
    "first_plan_step_ms": 300,
    "changed_plan_ms": 300,
    "uneven_plan_ratio": 1.3,
    "flat_plan_ratio": 1.3,
    "page_load_5000_task_ms": 100,
    "page_open_5000_task_ms": 100,
    "page_scroll_5000_task_ms": 100,
    "page_report_open_cpu_ms": 100,
    "page_token_ms": 50,
    "folder_restart_seconds": 3,
    "folder_keyword_ms_p95": 250,
    "folder_sentence_ms_p95": 500,
    "folder_keyword_right_weak": 0.05,
    "folder_sentence_right_weak": 0.05,
    "cpu_1_of_bare": 0.45,
    "cpu_8_of_bare": 0.6,
    "cpu_1_no_proxy_of_bare": 0.45,
    "cpu_8_no_proxy_of_bare": 0.6,
    "cpu_1_http_proxy_of_bare": 0.45,
    "cpu_8_http_proxy_of_bare": 0.6,
    "cpu_realistic_of_bare": 0.75,
    **{f"{name}_cpu_of_native": 1.1 for name in protocol_cpu.PROTOCOLS if name != protocol_cpu.NATIVE},
    "alone_over_model_ms": 30,
    **queue.LIMITS,
    "streams_64_p50_s": 8,
    "streams_64_p95_s": 10,
    "streams_64_cpu_ms": 100,
    "streams_64_first_last_s": 2,
    "streams_200_first_last_s": 2,
    "streams_200_p50_s": 25,
    "code_64_p50_s": 8,
    "code_64_p95_s": 10,
    "code_64_cpu_ms": 100,
    "token_cpu_of_bare": 0.45,
    "search_run_cpu_of_bare": 2.5,
    "browser_step_cpu_of_bare": 5,
    "runs_1000_growth_mb": 20,
    "runs_1000_growth_descriptors": 10,
    # Of one core; above it the figures of the servers would show the model's or the client's limit.
    "model_server_share": 0.6,
    "client_share": 0.6,
}
AT_LEAST = {
    "replay_events_per_s": 20_000,
    "extraction_f1": 0.9,
    "folder_files_per_second": 100,
    "folder_keyword_lead": -0.03,
    "folder_sentence_lead": -0.03,
    "folder_outside_weak": 0.9,
    "everyday_right": 16,
    "streams_progressing": endurance.AT_ONCE,
}
Figures = dict[str, float]


@dataclass(frozen=True)
class Part:
    """Figures that are measured together."""

    measure: Callable[[str], Figures | Awaitable[Figures]]
    """Is called with the URL of the tests' model server."""
    seconds: int
    """About how long it takes on two idle cores."""


PARTS = {
    "server": Part(server.measure, 10),
    "live": Part(lambda _: live.measure(), 15),
    "framework": Part(framework.measure, 10),
    "cpu": Part(lambda _: streams.measure_cpu(), 45),
    "protocols": Part(lambda _: protocol_cpu.measure(), 60),
    "tokens": Part(lambda _: long_run.measure_tokens(), 30),
    "streams": Part(lambda _: streams.measure(), 300),
    "code": Part(lambda _: streams.measure_code(), 30),
    "browser_loop": Part(lambda _: tool_runs.measure_browser(), 70),
    "queue": Part(lambda _: queue.measure(), 120),
    "search_run": Part(lambda _: tool_runs.measure_search(), 20),
    "long_run": Part(lambda _: long_run.measure(), 300),
    "persistence": Part(endurance.measure_persistence, 10),
    "endurance": Part(endurance.measure, 25),
    "plan_graph": Part(lambda _: plan_graph.measure(), 10),
    "sandbox": Part(lambda _: sandbox.measure(), 15),
    "crawl": Part(lambda _: crawl.measure(), 60),
    "browser_actions": Part(lambda _: browser_actions.measure(), 40),
    "browser_state": Part(lambda _: browser_state.measure(), 25),
    "page": Part(lambda _: page.measure(), 45),
    "replay": Part(replay.measure, 15),
    "extraction": Part(lambda _: extraction.measure(), 20),
    "folder_search": Part(lambda _: folder_search.measure(), 90),
    "everyday": Part(lambda _: everyday.measure(), 480),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each figure with its limit; the exit status says whether all hold."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to measure; default: everything")
    parser.add_argument("--list", action="store_true", help="list the parts with their seconds")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:16} {part.seconds:4} s" for name, part in PARTS.items()))
        return 0
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"There is no part {', '.join(unknown)}. There are {', '.join(PARTS)}.")
    with _model() as base_url:
        missed = _measure(options.parts or list(PARTS), base_url)
    if missed:
        print(f"MISSED: {', '.join(missed)}")
    return 1 if missed else 0


def _measure(names: Sequence[str], base_url: str) -> list[str]:
    """Print the figures of these parts and return those whose limit does not hold."""
    missed: list[str] = []
    began, expected = time.perf_counter(), sum(PARTS[name].seconds for name in names)
    _note(f"{len(names)} parts, about {expected / 60:.0f} minutes on two idle cores")
    for number, name in enumerate(names, 1):
        _note(
            f"[{time.perf_counter() - began:4.0f} s] {number}/{len(names)} {name} (~{PARTS[name].seconds} s)"
        )
        figures = PARTS[name].measure(base_url)
        for figure, value in (_awaited(figures) if inspect.isawaitable(figures) else figures).items():
            limit, holds = check_limit(figure, value)
            print(f"{figure:32} {value:10}  {limit}", flush=True)
            if not holds:
                missed.append(figure)
    _note(f"[{time.perf_counter() - began:4.0f} s] done")
    return missed


def _awaited(figures: Awaitable[Figures]) -> Figures:
    async def wait() -> Figures:
        return await figures

    return asyncio.run(wait())


def check_limit(figure: str, value: float) -> tuple[str, bool]:
    """Return a figure's limit as text, "" if it has none, and whether it holds."""
    if figure in AT_MOST:
        holds, limit = value <= AT_MOST[figure], f"at most {AT_MOST[figure]}"
    elif figure in AT_LEAST:
        holds, limit = value >= AT_LEAST[figure], f"at least {AT_LEAST[figure]}"
    else:
        return "", True
    return f"({limit}: {'holds' if holds else 'MISSED'})", holds


@contextmanager
def _model() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:
        try:
            yield (model.stdout.readline() if model.stdout else "").strip()
        finally:
            model.terminate()


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
