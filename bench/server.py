"""How soon the server is ready, what it weighs, and how many calls and tokens a question costs over HTTP."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
_ADDRESS = re.compile(r"Serving on (http://127\.0\.0\.1:\d+)")


@contextmanager
def serving(base_url: str, home: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start `server.py` as a user with this home would; yield its address and process, and stop it."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "BASIC_MODEL": "scripted",
        "BASIC_BASE_URL": base_url,
        "BASIC_API_KEY": "x",
        "MANIPLE_DATA_DIR": f"{home}/data",
    }
    command = [sys.executable, str(ROOT / "server.py"), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=home, env=env, text=True, **pipes)
    try:
        yield next(found[1] for line in process.stdout or () if (found := _ADDRESS.search(line))), process
    finally:
        process.terminate()
        process.wait(15)


def measure(base_url: str) -> dict[str, float]:
    """Ask a fresh server once."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as home, serving(base_url, home) as (url, process):
        httpx.get(f"{url}/healthz").raise_for_status()
        ready = time.perf_counter() - started
        idle = _memory_mb(process.pid)
        admin = base_url.removesuffix("/v1")
        httpx.post(f"{admin}/admin/reset")
        body = {"messages": [{"role": "user", "content": "1+3=?"}]}
        began = time.perf_counter()
        answer = httpx.post(f"{url}/api/chat/stream", json=body, timeout=60)
        took = time.perf_counter() - began
        assert "end_of_workflow" in answer.text
        stats = httpx.get(f"{admin}/admin/stats").json()
        return {
            "ready_s": round(ready, 2),
            "memory_ready_mb": round(idle),
            "memory_after_a_run_mb": round(_memory_mb(process.pid)),
            "model_calls": stats["calls"],
            "prompt_tokens": stats["prompt_tokens"],
            "first_run_s": round(took, 2),
        }


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0
