"""Process 1 of a session: starts the interpreter, runs bash commands, and interrupts either.

Runs inside the sandbox, where only its text is: it must stand alone, with the standard library and
nothing of maniple, on any available Python. It imports little, because each import delays a start.

    python worker.py CONTROL CALLS INTERPRETER BASH

CONTROL and CALLS are sockets to the host. This process answers the first and leaves the second to the
interpreter, whose code is in the file INTERPRETER (`.py` or `.pyc`). What is printed goes to the
descriptors 1 and 2; the host reads their other ends. A frame is its length in four bytes,
big-endian, and then, towards here, an id, a verb and a text on lines of their own; towards the host, a
JSON object in UTF-8.

    host: ID bash COMMAND      {"id": ID, "exit_code": N} when bash itself has ended
    host: ID kill              ends that command with all that it started
    host: ID interrupt         {"id": ID, "interrupted": true} when the interpreter has been interrupted
    host: "" freeze            stops every other process; nothing is answered
    host: "" thaw              lets them continue; nothing is answered
    unasked                    {"ready": true} at the start, {"died": N} when the interpreter has ended
"""

# pathlib takes longer to import than all that is needed here.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

# `signal` itself imports `enum`, which takes as long as all the rest.
import _signal as signal  # pyright: ignore[reportMissingImports]
import os
import select
import sys

# One argument of a command may be as long as 128 KiB.
_MAX_ARGUMENT_LENGTH = 100_000
_ROUNDS, _PAUSE_SECONDS = 200, 0.005
_SIGCONT, _SIGSTOP = signal.SIGCONT, signal.SIGSTOP
_PYC_HEADER_BYTES = 16
_CANNOT_RUN = 126


def read_frame(descriptor: int) -> bytes:
    """The next frame, or nothing at the end."""
    length = int.from_bytes(_read(descriptor, 4), "big")
    return _read(descriptor, length) if length else b""


def _read(descriptor: int, length: int) -> bytes:
    content = b""
    while len(content) < length:
        piece = os.read(descriptor, length - len(content))
        if not piece:
            return b""
        content += piece
    return content


def write_frame(descriptor: int, content: bytes) -> None:
    """Send a frame whole."""
    rest = memoryview(len(content).to_bytes(4, "big") + content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class Init:
    """Waits for the host's words and for the ends of processes."""

    def __init__(self, control: int, interpreter: int, bash: str) -> None:
        self._control = control
        self._interpreter = interpreter
        self._bash = bash
        self._call = ""
        self._command = 0
        self._stopped: set[int] | None = None
        """While all are frozen: the processes that the code had stopped before."""

    def serve(self, ends: int) -> None:
        """Until the host closes its end; `ends` becomes readable when a process has ended."""
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(ends, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if ends in ready:
                os.read(ends, 4096)
                self._reap()
            if self._control in ready:
                frame = read_frame(self._control)
                if not frame:
                    return
                self._obey(*frame.split(b"\n", 2))

    def _obey(self, call: bytes, verb: bytes, text: bytes) -> None:
        if verb == b"bash":
            self._begin(call.decode(), text.replace(b"\0", b""))
        elif verb == b"kill":
            if call.decode() == self._call:
                kill_tree(self._command)
        elif verb in (b"freeze", b"thaw"):
            if os.getpid() == 1:  # elsewhere, -1 would mean processes that are not of this session
                self._freeze() if verb == b"freeze" else self._thaw()
        else:
            # With its children, as a terminal does: `os.system` itself does not listen.
            os.killpg(self._interpreter, signal.SIGINT)
            self._send_message(f'{{"id": "{call.decode()}", "interrupted": true}}')

    def _freeze(self) -> None:
        """Stop all processes at one moment, in which none of them can start another."""
        if self._stopped is None:
            self._stopped = {process for process, state in _states() if state == b"T"}
            _send(-1, _SIGSTOP)

    def _thaw(self) -> None:
        """Continue all processes but those that the code itself had stopped."""
        for process in {process for process, _ in _states()} - {1} - (self._stopped or set()):
            _send(process, _SIGCONT)
        self._stopped = None

    def _begin(self, call: str, command: bytes) -> None:
        self._call = call
        try:
            self._command = self._start(command)
        except OSError as error:  # too many processes, or /tmp is full
            os.write(2, f"bash could not be started: {error.strerror}\n".encode())
            self._send_message(f'{{"id": "{call}", "exit_code": {_CANNOT_RUN}}}')
            self._call = ""

    def _start(self, command: bytes) -> int:
        arguments = [b"bash", b"-c", command]
        if len(command) > _MAX_ARGUMENT_LENGTH:
            path = f"/tmp/.command-{self._call}".encode()
            with open(path, "wb") as file:
                file.write(b"rm -f " + path + b"\n" + command)
            arguments = [b"bash", path]
        # Python ignores these two, and what it starts would, too: `yes | head` needs the first.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawn(self._bash, arguments, os.environ, setsid=True, setsigdef=defaults)  # noqa: TID251

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if process == self._command:
                self._send_message(f'{{"id": "{self._call}", "exit_code": {code}}}')
                self._call, self._command = "", 0
            elif process == self._interpreter:
                self._send_message(f'{{"died": {code}}}')

    def _send_message(self, message: str) -> None:
        write_frame(self._control, message.encode())


def _send(process: int, number: int) -> None:
    """Send a signal; -1 is every process of the namespace but this one."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _states() -> list[tuple[int, bytes]]:
    """Return each process with the letter of its state."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(name)):
            found.append((int(name), fields[0]))
    return found


def kill_tree(leader: int) -> None:
    """Kill what descends from `leader` or is of its session; what outruns that ends with everything."""
    for _ in range(_ROUNDS):
        alive = _members(leader)
        if not alive:
            return
        for process in alive:
            _send(process, signal.SIGKILL)
        select.select([], [], [], _PAUSE_SECONDS)
    os._exit(1)


def _members(leader: int) -> list[int]:
    parents: dict[int, int] = {}
    members: set[int] = set()
    for name in os.listdir("/proc"):
        found = _status(name) if name.isdigit() else None
        if found:
            parents[int(name)] = found[0]
            if int(name) == leader or found[1] == leader:
                members.add(int(name))
    before = -1
    while len(members) != before:
        before = len(members)
        members |= {process for process, parent in parents.items() if parent in members}
    return sorted(members)


def _status(process: str) -> tuple[int, int] | None:
    """Parent and session of a living process."""
    fields = _stat(process)
    return None if not fields or fields[0] in (b"Z", b"X") else (int(fields[1]), int(fields[3]))


def _stat(process: str) -> list[bytes]:
    """State, parent, group, session and so on (proc_pid_stat(5)); nothing of one that has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _start_interpreter(calls: int, control: int, path: str) -> int:
    process = os.fork()
    if process:
        return process
    os.setsid()
    os.close(control)
    with open(path, "rb") as file:
        text = file.read()
    if path.endswith(".pyc"):
        import marshal

        code = marshal.loads(memoryview(text)[_PYC_HEADER_BYTES:])
    else:
        code = compile(text, path, "exec", dont_inherit=True)
    names: dict = {"__name__": "maniple_interpreter"}
    exec(code, names)
    names["serve"](lambda: read_frame(calls), lambda content: write_frame(calls, content))
    os._exit(0)


def main(control: int, calls: int, interpreter: str, bash: str) -> None:
    """Serve the host until it goes."""
    # With Python's own handler, sandboxed code could interrupt this process, too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.set_inheritable(control, False)
    os.set_inheritable(calls, False)
    process = _start_interpreter(calls, control, interpreter)
    os.close(calls)
    ends, end = os.pipe()
    os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    write_frame(control, b'{"ready": true}')
    Init(control, process, bash).serve(ends)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
