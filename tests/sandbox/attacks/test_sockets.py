"""Code that holds memory in sockets that nobody reads, where no limit of a process counts it."""

from pathlib import Path

import pytest

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.sandbox.socket_memory import SocketBounds
from maniple.workspace import Workspace, Workspaces

pytestmark = pytest.mark.anyio

_LIMIT_MB = 192
# Between two looks of the watchdog code can fill some more, on a machine that others use too.
_ENOUGH_MB = 2 * _LIMIT_MB
_FILL = """
import os, socket, threading, time
MB = 1 << 20
def pair(kind):
    if kind == "tcp":
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * MB)
            sender = socket.create_connection(listener.getsockname())
            return sender, listener.accept()[0]
    return socket.socketpair(socket.AF_UNIX, {"stream": 1, "datagram": 2, "packet": 5}[kind])
def enlarge(one):
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
        try: one.setsockopt(socket.SOL_SOCKET, option, 16 * MB)
        except OSError: pass
def fill(one, size=150_000):
    one.setblocking(False)
    held = 0
    try:
        while True: held += one.send(bytes(size))
    except (BlockingIOError, ConnectionError): return held
def full_pair(kind):
    both = pair(kind)
    for one in both: enlarge(one)
    # TCP moves what is sent to the other side in the background, and takes more then.
    return both, sum(fill(one) for _ in range(4 if kind == "tcp" else 1) for one in both)
"""
# Each takes at most `ENOUGH` bytes, and keeps them until it is stopped.
_HOARD = """
def hoard(take):
    reading, writing = os.pipe()
    total = 0
    for _ in range(24):
        if os.fork() == 0:
            kept = []
            try:
                while True: kept.append(take(writing))
            except OSError: pass
            os.write(writing, b"0\\n")
            time.sleep(60)
        with os.fdopen(os.dup(reading), "rb", 0) as lines:
            while (count := int(lines.readline())):
                total += count
                if total > ENOUGH: break
        if total > ENOUGH: break
    print("held", total // MB, "MB", flush=True)
    time.sleep(3)
    print("kept-it")
def take(writing):
    kept, held = full_pair(KIND)
    os.write(writing, f"{held}\\n".encode())
    return kept
"""


def _code(kind: str, end: str) -> str:
    return f"{_FILL}\nENOUGH = {_ENOUGH_MB} * MB\nKIND = {kind!r}\n{_HOARD}\n{end}"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("hoarder")


async def _attacked(sandbox: Sandbox, workspace: Workspace, code: str) -> ExecutionResult:
    await sandbox.run_python("1", key="hoarder", workspace=workspace)
    return await sandbox.run_python(code, key="hoarder", workspace=workspace)


@pytest.mark.parametrize("kind", ["stream", "datagram", "packet", "tcp"])
async def test_unread_sockets_hold_no_more_than_the_limit(
    narrow: Sandbox, workspace: Workspace, kind: str
) -> None:
    completed = await _attacked(narrow, workspace, _code(kind, "hoard(take)"))
    assert "kept-it" not in completed.stdout, completed.text()
    assert f" {_LIMIT_MB} MB " in completed.lost


_AFTER_CLOSING = """
def take(writing):  # what waits for the receiver stays when the sender has closed
    kept, held = [], 0
    receiver = pair(KIND)[0]
    name = f"\\0{os.getpid()}-{receiver.fileno()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(name)
    for _ in range(10):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            enlarge(sender)
            sender.connect(name)
            held += fill(sender)
    os.write(writing, f"{held}\\n".encode())
    return listener, receiver
"""
_IN_FLIGHT = """
def take(writing):  # full sockets that wait in another one, and are open nowhere else
    both, held = full_pair(KIND)
    carrier = take.__dict__.setdefault("carrier", socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    carrier[0].setblocking(False)
    socket.send_fds(carrier[0], [b"."], [one.fileno() for one in both])
    os.write(writing, f"{held}\\n".encode())
    return None if [one.close() for one in both] else None
"""
_AFTER_RESET = """
import struct
def take(writing):  # a receiver keeps what it has not read when its sender has gone without a word
    (sender, receiver), held = full_pair("tcp")
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sender.close()
    os.write(writing, f"{max(held // 2, 1)}\\n".encode())
    return receiver
"""


@pytest.mark.parametrize(
    ("kind", "take"),
    [("datagram", _AFTER_CLOSING), ("stream", _IN_FLIGHT), ("tcp", _AFTER_RESET)],
    ids=["closed senders", "sockets in flight", "reset connections"],
)
async def test_sockets_count_that_no_descriptor_stands_for(
    narrow: Sandbox, workspace: Workspace, kind: str, take: str
) -> None:
    completed = await _attacked(narrow, workspace, _code(kind, f"{take}\nhoard(take)"))
    assert "kept-it" not in completed.stdout, completed.text()
    assert f" {_LIMIT_MB} MB " in completed.lost or "socket" in completed.lost


_GROWN = """
sender, receiver = pair("tcp")
sender.setblocking(False); receiver.setblocking(False)
moved = 0
while moved < 60 * MB:  # the kernel enlarges the buffers of those who read fast
    try: sender.send(bytes(MB))
    except BlockingIOError: pass
    try: moved += len(receiver.recv(4 * MB))
    except BlockingIOError: pass
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 64 * MB)
print(sum(fill(one, 65_536) for _ in range(20) for one in (sender, receiver)) // 2)
"""


@pytest.mark.parametrize(
    "code",
    [_GROWN, *(f"print(full_pair({kind!r})[1] // 2)" for kind in ("stream", "datagram", "packet", "tcp"))],
    ids=["grown by use", "stream", "datagram", "packet", "tcp"],
)
async def test_no_socket_holds_more_than_it_counts(narrow: Sandbox, workspace: Workspace, code: str) -> None:
    inside = {"run/maniple/tcp_rmem": b"4096 131072 196608", "run/maniple/tcp_wmem": b"4096 16384 98304"}
    bound = SocketBounds().bytes_per_socket(lambda name: inside[name])
    completed = await _attacked(narrow, workspace, f"{_FILL}\n{code}")
    assert 10_000 < int(completed.stdout) <= bound, completed.text()
    assert bound < 1_000_000


async def test_no_page_waits_in_a_socket_for_the_sake_of_a_byte(
    narrow: Sandbox, workspace: Workspace
) -> None:
    code = """
import os, socket
with open("x", "wb") as file: file.write(bytes(1 << 20))
reading, writing = os.pipe()
one, other = socket.socketpair()
for copy in (
    lambda file: os.splice(file, writing, 1),
    lambda file: os.sendfile(one.fileno(), file, 0, 1),
):
    with open("x", "rb") as file:
        try: print(copy(file.fileno()))
        except OSError as error: print(type(error).__name__, error.errno)
"""
    completed = await _attacked(narrow, workspace, code)
    assert completed.stdout == "OSError 22\n" * 2


async def test_programs_that_use_sockets_and_copy_files_work(narrow: Sandbox, workspace: Workspace) -> None:
    code = """
import asyncio, concurrent.futures, multiprocessing, os, shutil, socket, subprocess, threading, urllib.request
from http.server import HTTPServer, SimpleHTTPRequestHandler

with socket.socket() as one:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF): one.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(abs, [-1, -2]))

async def echo(reader, writer):
    writer.write(await reader.read()); await writer.drain(); writer.close()
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async def ask():
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x" * 100_000); writer.write_eof()
        return len(await reader.read())
    print(sum(await asyncio.gather(*(ask() for _ in range(50)))))
    with open("big", "rb") as file:
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        sending = asyncio.ensure_future(asyncio.get_running_loop().sock_sendfile(writing, file))
        print(len(await asyncio.to_thread(reading.recv, 100)), await sending)
with open("big", "wb") as file: file.write(b"b" * 100_000)
def run():
    asyncio.run(main())
thread = threading.Thread(target=run); thread.start(); thread.join()
print(shutil.copyfile("big", "copied"), os.path.getsize("copied"))
subprocess.run("cp big again && cat big | wc -c && cat big > third && cmp big third", shell=True, check=True)
handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
with HTTPServer(("127.0.0.1", 0), handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(len(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/big").read()))
    server.shutdown()
"""
    completed = await _attacked(narrow, workspace, code)
    assert completed.stdout.split("\n") == [
        *("[1, 2]", "5000000", "100 100000", "copied 100000", "100000", "100000", "")
    ], completed.text()
