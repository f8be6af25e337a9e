"""The figures of `docs/figures.md`: `python -m bench`. Only loopback is used."""

import asyncio
import subprocess
import sys

from bench import (
    browser_actions,
    browser_state,
    crawl,
    endurance,
    extraction,
    framework,
    page,
    plan_graph,
    replay,
    sandbox,
    server,
)

AT_MOST = {
    "model_calls": 5,
    "prompt_tokens": 2_500,
    "first_event_ms": 10,
    "ratio": 1.5,
    "ready_s": 4,
    "memory_ready_mb": 160,
    "growth_mb_in_50_runs": 5,
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
    "uneven_plan_ratio": 1.3,
    "flat_plan_ratio": 1.3,
    "page_load_5000_task_ms": 100,
    "page_open_5000_task_ms": 100,
    "page_scroll_5000_task_ms": 100,
    "page_token_ms": 50,
}
AT_LEAST = {
    "replay_events_per_s": 20_000,
    "extraction_f1": 0.9,
    "streams_progressing": endurance.AT_ONCE,
}


def main() -> int:
    """Print each figure with its limit; the exit status says whether all hold."""
    command = [sys.executable, "-m", "tests.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:
        try:
            base_url = (model.stdout.readline() if model.stdout else "").strip()
            figures = server.measure(base_url)
            figures |= asyncio.run(_measure(base_url))
            figures |= extraction.measure()
        finally:
            model.terminate()
    for name, value in figures.items():
        print(f"{name:26} {value:10}  {_limit(name, value)}")
    return 1 if any("MISSED" in _limit(name, value) for name, value in figures.items()) else 0


async def _measure(base_url: str) -> dict[str, float]:
    figures = await framework.measure(base_url)
    figures |= await plan_graph.measure()
    figures |= await endurance.measure(base_url)
    figures |= await sandbox.measure()
    figures |= await crawl.measure()
    figures |= await browser_actions.measure()
    figures |= await browser_state.measure()
    figures |= await page.measure()
    return figures | await replay.measure(base_url)


def _limit(name: str, value: float) -> str:
    if name in AT_MOST:
        return f"(at most {AT_MOST[name]}{', MISSED' if value > AT_MOST[name] else ''})"
    if name in AT_LEAST:
        return f"(at least {AT_LEAST[name]}{', MISSED' if value < AT_LEAST[name] else ''})"
    return ""


if __name__ == "__main__":
    sys.exit(main())
