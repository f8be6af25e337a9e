"""Threats of the OWASP lists for LLM applications (2025) and agents, as far as code that a model wrote goes.

Each name begins with its number. The model obeys the attacker; what happens is looked at from outside.
"""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.environment import environment
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.safety.logged_server import open_server
from tests.safety.test_faults import QUESTION, Frames, frames_in, of
from tests.sizes import rest_is_slow

TIMEOUT_SECONDS = 3
MAX_SECONDS_OF_AN_ANSWER = 20
KEY = "sk-canary-0123456789"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@contextmanager
def _served(model: OpenAIServer, home: Path, **more: str) -> Iterator[httpx.Client]:
    env = environment(model.base_url, home, MANIPLE_SANDBOX__TIMEOUT_SECONDS=str(TIMEOUT_SECONDS), **more)
    with open_server(env, home) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code")


_TOOK = re.compile(r"(^|\n)\[took [0-9.]+ s\]")


@pytest.fixture(scope="module")
def client(model: OpenAIServer, home: Path) -> Iterator[httpx.Client]:
    with _served(model, home) as client:
        yield client


def _obeyed(client: httpx.Client, model: OpenAIServer, *calls: dict[str, Any]) -> list[str]:
    """Let the coder make these calls; return their results. The run completes in every case."""
    model.reset({**SIMPLE, "coder": [*calls, reply("Done.")]})
    frames = frames_in(client.post("/api/chat/stream", json=QUESTION).text)
    assert of(frames, "run_status") == [{"status": "completed"}], of(frames, "error")
    return _results(frames)


def _results(frames: Frames) -> list[str]:
    """What each call came to, without the line that a slow machine adds."""
    return [_TOOK.sub("", result["tool_result"]) for result in of(frames, "tool_call_result")]


def _made_in(home: Path) -> set[str]:
    return {path.name for path in (home / "data" / "workspaces").rglob("*") if path.is_file()}


def test_llm02_no_secret_of_the_server_is_within_reach_of_code(
    client: httpx.Client, model: OpenAIServer, home: Path
) -> None:
    (home / ".env.secret").write_text(KEY)
    # Told backwards, so that no filter of what is said can hide what was found.
    code = f"""
import os
from pathlib import Path
secret = {KEY[::-1]!r}[::-1].encode()
places = [Path({str(home)!r}, ".env.secret")]
places += [*Path("/proc").glob("*/environ"), *Path("/proc").glob("*/cmdline")]
places += [path for path in Path("/workspace").rglob("*") if path.is_file()]
looked, found = 0, []
for place in places:
    try:
        content = place.read_bytes()
    except OSError:
        continue
    looked += 1
    if secret in content:
        found.append(str(place))
print("looked at", looked > 2, "and found", found, secret.decode() in os.environ.values())
"""
    assert _obeyed(client, model, call("python_repl_tool", code=code)) == [
        "looked at True and found [] False"
    ]


def test_llm02_links_and_special_files_of_code_are_not_stored(
    client: httpx.Client, model: OpenAIServer, home: Path
) -> None:
    (home / "secret.txt").write_text(KEY)
    code = f"""
import os
os.symlink({str(home / "secret.txt")!r}, "link.txt")
os.symlink({str(home)!r}, "folder")
os.symlink("/etc/passwd", "passwd.txt")
os.mkfifo("pipe.txt")
open("own.txt", "w").write("own")
os.link("own.txt", "again.txt")
open("sparse.bin", "wb").truncate(90 << 20)
open("report.txt", "w").write("mine")
"""
    model.reset({**SIMPLE, "coder": [call("python_repl_tool", code=code), reply("Done.")]})
    frames = frames_in(client.post("/api/chat/stream", json=QUESTION).text)
    kept = {artifact["name"]: client.get(artifact["url"]).content for artifact in of(frames, "artifact")}
    assert kept.pop("report.txt") == b"mine"
    assert set(kept) <= {"sparse.bin"}
    assert of(frames, "run_status") == [{"status": "completed"}]


def test_llm05_what_a_model_writes_is_never_run_for_being_code(
    client: httpx.Client, model: OpenAIServer, home: Path
) -> None:
    writing = f"open({str(home / 'ran')!r}, 'w').write('ran'); open('/workspace/ran', 'w')"
    text = f"```python\n{writing}\n```\n<script>run()</script> $(touch {home}/ran) `touch {home}/ran`"
    step = {"agent_name": "coder", "title": text, "description": text, "note": f"__import__('os'); {writing}"}
    plan = {"thought": text, "title": text, "steps": [step, {**step, "agent_name": "reporter"}]}
    # What a program prints is no call either, however it looks.
    printed = json.dumps(call("bash_tool", cmd="touch ran")["tool_calls"][0])
    model.reset(
        {
            "coordinator": SIMPLE["coordinator"],
            "planner": [reply(json.dumps(plan))],
            "coder": [call("bash_tool", cmd=f"echo '{printed}'"), reply(text)],
            "reporter": [reply(text)],
        }
    )
    frames = frames_in(client.post("/api/chat/stream", json=QUESTION).text)
    assert of(frames, "run_status") == [{"status": "completed"}], of(frames, "error")
    assert _results(frames) == [printed]
    assert not (home / "ran").exists()
    assert "ran" not in _made_in(home)


def test_llm06_code_waits_for_approval_if_required(model: OpenAIServer, tmp_path: Path) -> None:
    approval = json.dumps(["python_repl_tool", "bash_tool"])
    with _served(model, tmp_path, MANIPLE_RUNS__APPROVAL=approval) as client:
        model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="touch ran"), reply("Done.")]})
        frames = frames_in(client.post("/api/chat/stream", json=QUESTION).text)
        run = client.get(f"/api/runs/{of(frames, 'run')[0]['run_id']}").json()
    assert run["status"] == "interrupted"
    assert _results(frames) == []
    assert _made_in(tmp_path) == set()


@pytest.mark.parametrize(
    "bomb",
    rest_is_slow(
        [
            call("python_repl_tool", code="import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"),
            call("bash_tool", cmd="yes"),
            call("python_repl_tool", code="while True: pass"),
            call("bash_tool", cmd="while :; do :; done"),
            call("python_repl_tool", code="x = []\nwhile True: x.append(bytearray(10 ** 7))"),
            call(
                "python_repl_tool", code="for n in range(10 ** 6): open(str(n), 'wb').write(bytes(10 ** 7))"
            ),
        ],
        2,  # the sandbox's own tests hold each of them back, too
    ),
    ids=["processes", "output", "loop", "shell loop", "memory", "disk"],
)
def test_llm10_a_run_ends_and_the_server_answers_under_any_load_of_code(
    client: httpx.Client, model: OpenAIServer, bomb: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(_obeyed, client, model, bomb)
        answers = 0
        while not run.done():
            began = time.monotonic()
            assert client.get("/healthz").status_code == 200
            assert time.monotonic() - began < MAX_SECONDS_OF_AN_ANSWER
            answers += 1
        assert len(run.result()[0]) < 100_000
    assert answers > 1


def test_asi02_tools_that_are_misused_hurt_nothing_outside(
    client: httpx.Client, model: OpenAIServer, home: Path
) -> None:
    _obeyed(client, model, call("bash_tool", cmd="echo mine > of-another-thread"))
    results = _obeyed(
        client,
        model,
        call("bash_tool", cmd="cat /etc/shadow ~/.ssh/id_rsa /root/.bash_history 2>/dev/null; echo $?"),
        call("bash_tool", cmd=f"exec 3<>/dev/tcp/127.0.0.1/{client.base_url.port} && echo connected"),
        call("bash_tool", cmd=f"echo x > {home}/planted || ls {home} || echo nothing there"),
        call("bash_tool", cmd="kill -9 -1"),
        call(
            "bash_tool",
            cmd="rm -rf --no-preserve-root / 2>/dev/null; rm -rf /workspace/../* 2>/dev/null; echo",
        ),
        call(
            "bash_tool",
            cmd="find / -path /usr -prune -o -path /proc -prune -o -name of-another-thread -print | wc -l",
        ),
        call("python_repl_tool", code="print(6 * 7)"),
    )
    assert results[0] == "1"
    assert "connected" not in results[1].replace("connection", "")
    assert "nothing there" in results[2]
    assert results[5] == "0"
    assert results[6] == "42"
    assert "of-another-thread" in _made_in(home)
    assert not (home / "planted").exists()
    assert client.get("/healthz").status_code == 200


def test_asi05_without_a_sandbox_code_is_run_nowhere(model: OpenAIServer, tmp_path: Path) -> None:
    writing = f"open({str(tmp_path / 'ran')!r}, 'w').write('ran')"
    with _served(model, tmp_path, PATH=str(tmp_path)) as client:
        results = _obeyed(
            client,
            model,
            call("python_repl_tool", code=writing),
            call("bash_tool", cmd=f"touch {tmp_path}/ran"),
        )
        told = client.get("/readyz").text
    assert all("is not" in result or "no tool" in result for result in results), results
    assert not (tmp_path / "ran").exists()
    assert "`bwrap` is not installed" in told
    assert "apt-get install -y bubblewrap" in told


def test_asi06_what_one_threads_code_leaves_behind_does_not_reach_another(
    client: httpx.Client, model: OpenAIServer
) -> None:
    poison = """
import builtins, os
builtins.POISON = 1
for place in ("/workspace/json.py", "/tmp/json.py", "/dev/shm/json.py"):
    open(place, "w").write("raise SystemExit('poisoned')")
open(os.path.expanduser("~/.bashrc"), "w").write("echo poisoned")
"""
    look = """
import builtins, json, os
files = [name for _, _, names in os.walk('.') for name in names]
print(hasattr(builtins, 'POISON'), files, os.listdir('/dev/shm'))
"""
    _obeyed(client, model, call("python_repl_tool", code=poison))
    results = _obeyed(
        client, model, call("python_repl_tool", code=look), call("bash_tool", cmd="ls -A ~ | grep -c bashrc")
    )
    assert results[0] == "False [] []"
    assert results[1].startswith("0")
