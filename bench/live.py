"""How soon a person sees what a model writes (small talk, a plan, its first step), and a changed plan."""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.environment import environment
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.serving import server_process

ROUNDS = 9
TOKEN_SECONDS = 4.5 / 200
"""Of the model that was measured in use."""
SMALL_TALK = "Hello! I am fine, thank you, and I hope that you are well, too. " * 12
STEP = {"agent_name": "coder", "title": "Compute", "description": "Compute 1 + 3 with Python and print it."}
REPORT = {"agent_name": "reporter", "title": "Report", "description": "Report the result."}
PLAN = json.dumps({"thought": "The sum of 1 and 3 is asked for.", "title": "1 + 3", "steps": [STEP, REPORT]})
FIRST_STEP = PLAN[: PLAN.index("}") + 1]
HANDOFF = {"coordinator": [call("handoff_to_planner", locale="en")]}
SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "first_small_talk_ms": (
        "message",
        {"coordinator": [reply(SMALL_TALK, delay_seconds=TOKEN_SECONDS)]},
    ),
    "first_plan_text_ms": ("message", {**HANDOFF, "planner": [reply(PLAN, delay_seconds=TOKEN_SECONDS)]}),
    # One piece closes the step: how long a model takes to write it is its own matter.
    "first_plan_step_ms": (
        "plan",
        {**HANDOFF, "planner": [{"chunks": [FIRST_STEP, PLAN[len(FIRST_STEP) :]], "hang_after": 1}]},
    ),
}
"""By figure: the event that is waited for, and the replies."""
WORKING = {**HANDOFF, "planner": [reply(PLAN)], "coder": [{"hang": True}]}
CHANGE = {"action": "edit", "step_id": 2, "title": "Report in euros"}


def measure() -> dict[str, float]:
    """Return milliseconds from the model's first token, or the change, to the event at a client; medians."""
    with serving(HANDOFF) as model, tempfile.TemporaryDirectory() as home:
        settings = environment(model.base_url, home)
        with server_process(settings, Path(home), start=subprocess.Popen) as server:
            figures = {name: _median(_delay, server.url, model, *SCRIPTS[name]) for name in SCRIPTS}
            return {**figures, "changed_plan_ms": _median(_change_delay, server.url, model)}


def _median(delay: Callable[..., float], *given: Any) -> float:
    return round(statistics.median([delay(*given) for _ in range(ROUNDS + 1)][1:]) * 1000, 1)


def _delay(url: str, model: OpenAIServer, event: str, script: dict[str, Any]) -> float:
    """Wait for the first event of a kind, and leave; that ends the run."""
    model.reset(script)
    body = {"messages": [{"role": "user", "content": "1+3=?"}]}
    with httpx.stream("POST", f"{url}/api/chat/stream", json=body, timeout=60) as answer:
        for line in answer.iter_lines():
            if line == f"event: {event}":
                return time.perf_counter() - model.begun[-1]
    raise AssertionError(f"There was no {event}.")


def _change_delay(url: str, model: OpenAIServer) -> float:
    """Change the last step while the first one works, and wait until the stream shows it."""
    model.reset(WORKING)
    with httpx.Client(base_url=url, timeout=60) as client:
        thread = client.post("/api/threads").json()["thread_id"]
        run = client.post(f"/api/threads/{thread}/runs", json={"input": "1+3=?"}).json()["run_id"]
        model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
        began = time.perf_counter()
        client.post(f"/api/runs/{run}/plan", json=CHANGE).raise_for_status()
        with client.stream("GET", f"/api/runs/{run}/events") as answer:
            for line in answer.iter_lines():
                if CHANGE["title"] in line:
                    delay = time.perf_counter() - began
                    client.post(f"/api/runs/{run}/cancel")
                    return delay
    raise AssertionError("The change was not shown.")
