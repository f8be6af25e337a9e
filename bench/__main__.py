"""The figures of `docs/figures.md`: `python -m bench`. Only loopback is used."""

import asyncio
import subprocess
import sys

from bench import framework, server

# (figure, what it may be at most)
LIMITS = {
    "model_calls": 5,
    "prompt_tokens": 2_500,
    "first_event_ms": 10,
    "ratio": 1.5,
    "ready_s": 4,
    "memory_ready_mb": 160,
}


def main() -> int:
    """Print each figure with its limit; the exit status says whether all hold."""
    command = [sys.executable, "-m", "tests.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:
        try:
            base_url = (model.stdout.readline() if model.stdout else "").strip()
            figures = {**server.measure(base_url), **asyncio.run(framework.measure(base_url))}
        finally:
            model.terminate()
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    for name, value in figures.items():
        limit = f"(at most {LIMITS[name]}{', MISSED' if name in missed else ''})" if name in LIMITS else ""
        print(f"{name:24} {value:10}  {limit}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
