"""What there is on the host for an attack to reach, and all attacks on it at once."""

import fcntl
import inspect
import json
import os
import platform
import secrets
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import open_sandbox
from maniple.sandbox.isolation import ABSENT, CLONE, MACHINES, REFUSED
from maniple.workspace import Workspaces
from tests.sandbox.attacks import attempts

_SIOCGIFADDR = 0x8915
SECRET = "CANARY_OF_THE_HOST"


@contextmanager
def targets(root: Path) -> Iterator[dict[str, Any]]:
    """Files below `root`, sockets, a process with a secret in its environment and arguments, and threads.

    Fails when a datagram arrived.
    """
    machine = list(MACHINES).index(platform.machine())
    calls = {**REFUSED, **ABSENT}
    with ExitStack() as stack:
        listeners = _listeners(stack, root)
        udp = listeners.pop("canary")
        secret = root / "secret"
        secret.write_text("secret")
        other = Workspaces(root / "workspaces").open("other").path
        (other / "secret").write_text("secret")
        yield {
            **listeners,
            "secret": SECRET,
            "file": str(secret),
            "other": str(other),
            "threads": ["other"],
            "pid": stack.enter_context(_process()),
            "address": _address(),
            "calls": {name: numbers[machine] for name, numbers in calls.items() if numbers[machine]},
            "clone": CLONE[machine],
        }
        try:
            raise AssertionError(f"a datagram got out: {udp.recv(100)!r}")
        except BlockingIOError:
            pass


def _listeners(stack: ExitStack, root: Path) -> dict[str, Any]:
    tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
    tcp6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("0.0.0.0", 0))
    udp.setblocking(False)
    abstract = f"maniple-test-{secrets.token_hex(8)}"
    for address in (str(root / "socket"), f"\0{abstract}"):
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(address)
        unix.listen()
    return {
        "tcp": tcp.getsockname()[1],
        "tcp6": tcp6.getsockname()[1],
        "udp": udp.getsockname()[1],
        "canary": udp,
        "unix": str(root / "socket"),
        "abstract": abstract,
    }


@contextmanager
def _process() -> Iterator[int]:
    """One that has the secret in its environment and its arguments."""
    command = ["sh", "-c", "read _; exit", SECRET]
    with subprocess.Popen(command, env={**os.environ, SECRET: SECRET}, stdin=subprocess.PIPE) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _address() -> str:
    """This machine's own on its first network; loopback's if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # an interface may have no address
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                address = socket.inet_ntoa(answer[20:24])
                if not address.startswith("127."):
                    return address
    return "127.0.0.1"


async def all_tried(root: Path) -> dict[str, str]:
    """What stopped each attack, in the sandbox as it is by default; "" for one that nothing stopped."""
    async with open_sandbox(SandboxSettings()) as sandbox:
        with targets(root) as host:
            workspace = Workspaces(root / "workspaces").open("thread")
            code = f"{inspect.getsource(attempts)}\n\nmain({host!r})\n"
            completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert completed.exit_code == 0, completed.text()
    return json.loads(completed.stdout)


def names() -> list[str]:
    """Of all attacks."""
    host: dict[str, Any] = {"pid": 0, "tcp": 0, "tcp6": 0, "udp": 0, "threads": []}
    host |= dict.fromkeys(("file", "other", "unix", "abstract", "address", "secret"), "/nothing")
    calls = dict.fromkeys((*REFUSED, *ABSENT), 1)
    return [
        *attempts.host_attempts(host),
        *attempts.right_attempts(),
        *attempts.call_attempts(calls, 0),
    ]
