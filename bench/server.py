"""How soon the server is ready, what it weighs, and how many calls and tokens a question costs over HTTP."""

import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from tests.environment import environment
from tests.openai_server import SIMPLE, call
from tests.serving import server_process

_STEP = {"agent_name": "coder", "title": "1 + 3", "description": "Compute 1 + 3 with Python."}
CARRIED = {**SIMPLE, "coordinator": [call("handoff_to_planner", locale="en", step=_STEP)]}
"""The answers of a model whose hand-off carries the plan, as for any request that one member does."""


def measure(base_url: str) -> dict[str, float]:
    """Ask a fresh server once."""
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        with server_process(environment(base_url, home), Path(home), start=subprocess.Popen) as server:
            httpx.get(f"{server.url}/healthz").raise_for_status()
            ready = time.perf_counter() - started
            idle = server.memory_mb()
            admin = base_url.removesuffix("/v1")
            httpx.post(f"{admin}/admin/reset", json=CARRIED)
            body = {"messages": [{"role": "user", "content": "1+3=?"}]}
            began = time.perf_counter()
            answer = httpx.post(f"{server.url}/api/chat/stream", json=body, timeout=60)
            took = time.perf_counter() - began
            assert "end_of_workflow" in answer.text
            stats = httpx.get(f"{admin}/admin/stats").json()
            httpx.post(f"{admin}/admin/reset", json=SIMPLE)
            return {
                "ready_s": round(ready, 2),
                "memory_ready_mb": round(idle),
                "memory_after_a_run_mb": round(server.memory_mb()),
                "model_calls": stats["calls"],
                "prompt_tokens": stats["prompt_tokens"],
                "first_run_s": round(took, 2),
            }
