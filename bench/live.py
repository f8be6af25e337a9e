"""How soon a person sees what a model writes: small talk, the text of a plan, and its first step."""

import json
import statistics
import subprocess
import tempfile
import time
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


def measure() -> dict[str, float]:
    """Return milliseconds from the model's first token to the event at an HTTP client; medians."""
    with serving(HANDOFF) as model, tempfile.TemporaryDirectory() as home:
        settings = environment(model.base_url, home)
        with server_process(settings, Path(home), start=subprocess.Popen) as server:
            return {
                name: round(statistics.median(_delays(server.url, model, *script)) * 1000, 1)
                for name, script in SCRIPTS.items()
            }


def _delays(url: str, model: OpenAIServer, event: str, script: dict[str, Any]) -> list[float]:
    return [_delay(url, model, event, script) for _ in range(ROUNDS + 1)][1:]


def _delay(url: str, model: OpenAIServer, event: str, script: dict[str, Any]) -> float:
    """Wait for the first event of a kind, and leave; that ends the run."""
    model.reset(script)
    body = {"messages": [{"role": "user", "content": "1+3=?"}]}
    with httpx.stream("POST", f"{url}/api/chat/stream", json=body, timeout=60) as answer:
        for line in answer.iter_lines():
            if line == f"event: {event}":
                return time.perf_counter() - model.begun[-1]
    raise AssertionError(f"There was no {event}.")
