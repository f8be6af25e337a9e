"""examples/cluster.sh: several processes on a PostgreSQL server of its own, one of which dies."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import MANIPLE
from tests.examples.programs import EXAMPLES, LIGHT, SECONDS
from tests.openai_server import SIMPLE, serving
from tests.postgres import require_programs
from tests.serving import environment

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach: as root, pytest's own is closed to it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def wait_for(url: str) -> None:
    end = time.monotonic() + SECONDS
    while True:
        try:
            return httpx.get(url, trust_env=False, timeout=10).raise_for_status() and None
        except httpx.TransportError:
            assert time.monotonic() < end
            time.sleep(0.2)


def read_pid(path: Path, other_than: int = 0) -> int:
    """Return the process of a pid file, once it is another one than the one given."""
    end = time.monotonic() + SECONDS
    while not path.exists() or (pid := int(path.read_text() or "0")) in (0, other_than):
        assert time.monotonic() < end
        time.sleep(0.1)
    return pid


def ask(port: int) -> str:
    body = {"messages": [{"role": "user", "content": "1+3=?"}]}
    url = f"http://127.0.0.1:{port}/api/chat/stream"
    return httpx.post(url, json=body, trust_env=False, timeout=SECONDS).raise_for_status().text


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_that_dies_is_replaced_and_both_nodes_answer(folder: Path):
    require_programs()
    with ExitStack() as stack:
        model = stack.enter_context(serving(SIMPLE))
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [one.getsockname()[1] for one in taken]
        for one in taken:
            one.close()
        settings = {"MANIPLE": str(MANIPLE), "WORKERS": "1", "PORTS": " ".join(map(str, ports)), **LIGHT}
        env = environment(model.base_url, folder, **settings)
        log = stack.enter_context((folder / "log").open("wb"))
        script = subprocess.Popen(["bash", str(EXAMPLES / "cluster.sh")], cwd=folder, env=env, stderr=log)
        try:
            for port in ports:
                wait_for(f"http://127.0.0.1:{port}/healthz")
            assert '"completed"' in ask(ports[0])
            first = read_pid(folder / "cluster-data/worker-1.pid")
            os.kill(first, signal.SIGKILL)
            second = read_pid(folder / "cluster-data/worker-1.pid", first)
            assert '"completed"' in ask(ports[1])
            pids = [second, *(read_pid(folder / f"cluster-data/api-{port}.pid") for port in ports)]
        finally:
            script.send_signal(signal.SIGTERM)
            status = script.wait(SECONDS)
        assert (status, [one for one in pids if is_alive(one)]) == (0, [])
        assert not (folder / "cluster-data/postgres/postmaster.pid").exists()


def test_what_is_set_wrong_ends_all_and_says_so(folder: Path):
    require_programs()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = {"MANIPLE": str(MANIPLE), "WORKERS": "1", "PORTS": port, **LIGHT}
        env = environment("http://127.0.0.1:9/v1", folder, **settings)
        command = ["bash", str(EXAMPLES / "cluster.sh")]
        done = subprocess.run(
            command, cwd=folder, env=env, stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
    assert (done.returncode, f"port {port}" in done.stderr.decode()) == (2, True)
    pid = folder / "cluster-data/worker-1.pid"
    assert not (pid.exists() and is_alive(int(pid.read_text())))
    assert not (folder / "cluster-data/postgres/postmaster.pid").exists()


def test_a_database_that_the_folder_names_is_the_one_that_is_used(folder: Path):
    (folder / "conf.yaml").write_text("store:\n  url: postgresql://127.0.0.1:9/none\n", encoding="utf-8")
    settings = {"MANIPLE": str(MANIPLE), **LIGHT}
    env = environment("http://127.0.0.1:9/v1", folder, **settings)
    command = ["bash", str(EXAMPLES / "cluster.sh")]
    done = subprocess.run(command, cwd=folder, env=env, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    assert done.returncode != 0
    assert not (folder / "cluster-data/postgres").exists()
