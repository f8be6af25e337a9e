"""Process trees on the host, and the pipes for their input and output."""

import asyncio
import codecs
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress

# How long the kernel may take to end a killed tree on a busy machine.
_DEATH_SECONDS = 5.0


class ProcessTree:
    """A program whose children end with it, as those of `bwrap --die-with-parent` do."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        out: int,
        err: int,
        inherited: Iterable[int],
        environment: Mapping[str, str],
        given: int = subprocess.DEVNULL,
    ) -> None:
        """Start it in a session of its own; `given` is its standard input. Raises `OSError` when that fails.

        asyncio's subprocess can be cancelled after the fork and before the process id is known. A worker
        thread is no option: "parent" in die-with-parent means the thread that forked.
        """
        self._process = subprocess.Popen(
            argv,
            stdin=given,
            stdout=out,
            stderr=err,
            env=environment,
            cwd="/",
            pass_fds=tuple(inherited),
            start_new_session=True,
        )
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when the leader has ended and was reaped."""
        try:
            self._descriptor = os.pidfd_open(self._process.pid)
        except OSError:
            self._kill_group()
            self._process.wait()
            raise
        self._loop.add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        """The process id of the leader; it is not reused before `ended` is done."""
        return self._process.pid

    async def kill(self) -> None:
        """Kill every process and wait up to ten seconds for the leader's end; later calls do nothing."""
        # Before `ended` the process is not reaped, so its id is not reused.
        for kill in (self._kill_children, self._kill_group):
            if not self.ended.done():
                kill()
                await asyncio.wait({self.ended}, timeout=_DEATH_SECONDS)

    def _kill_children(self) -> None:
        """Kill the leader's children, so that it can reap them; without a child, kill its group.

        If the leader were killed first, process 1 of the host would inherit the child. In a container that is
        often the server, which does not reap it.
        """
        children = _children(self.pid)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        if not children:
            self._kill_group()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        # The descriptor was readable: the process has ended, so this does not block.
        self._process.wait()
        self.ended.set_result(None)


def _children(process: int) -> list[int]:
    """Return the children of a single-threaded process; none on a kernel without that file."""
    try:
        # procfs does not block on a disk.
        descriptor = os.open(f"/proc/{process}/task/{process}/children", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        return [int(child) for child in os.read(descriptor, 4096).split()]
    except ProcessLookupError:
        return []
    finally:
        os.close(descriptor)


# An endless writer would occupy the event loop: past the limit, one pipe (64 KiB) is read per pause.
_PAUSE_SECONDS = 0.005
_PIECE_BYTES = 65_536


class TruncatedBuffer:
    """Stores the first and the last half of `limit_bytes`; the middle is counted and dropped."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def is_full(self) -> bool:
        return self._total > 2 * self._half

    def data_received(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        """Return the stored text, with a line that states how many bytes are missing in the middle."""
        missing = self._total - len(self._head) - len(self._tail)
        notice = f"\n[… {missing} bytes cut …]\n" if missing else ""
        # Decoded as a whole: where nothing was cut, a character may cross the middle.
        return (bytes(self._head) + notice.encode() + bytes(self._tail)).decode(errors="replace")


class OutputPipe:
    """The reading end of a pipe that receives the output of one call after the other.

    Output between two calls, of background processes, belongs to the second call.
    """

    def __init__(self, descriptor: int, limit_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._limit_bytes = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._capture = TruncatedBuffer(limit_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._on_text: Callable[[str], None] | None = None
        self._resumption: asyncio.TimerHandle | None = None
        self._is_listening = False
        self._is_reading = True
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when every writer has closed its end, or this end is closed."""
        self._loop.add_reader(descriptor, self._readable)

    def listen(self, on_text: Callable[[str], None] | None) -> None:
        """Pass each piece to `on_text` from now on, up to the limit.

        Until the next `take`, writers are never blocked for long.
        """
        self._on_text = on_text
        self._is_listening = True
        self._resume()

    def take(self) -> str:
        """Return all output so far; the next text starts after it."""
        self._drain()
        text, self._capture = self._capture.text(), TruncatedBuffer(self._limit_bytes)
        self._on_text = None
        self._is_listening = False
        self._decoder.reset()
        return text

    def close(self) -> None:
        """Stop reading; a second call does nothing."""
        if self._descriptor < 0:
            return
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        self.ended.set_result(None)

    def _drain(self) -> None:
        """Read what the pipe holds now, without what a writer adds meanwhile."""
        if self._descriptor < 0:
            return
        waiting = fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0" * 4)
        left = struct.unpack("i", waiting)[0]
        while left > 0 and (data := self._read()):
            left -= len(data)

    def _readable(self) -> None:
        if not self._read() or not self._capture.is_full:
            return
        self._loop.remove_reader(self._descriptor)
        self._is_reading = False
        # Between calls nothing beyond the limit is read: the pipe fills, and its writers block.
        if self._is_listening:
            self._resumption = self._loop.call_later(_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if not self._is_reading and self._descriptor >= 0:
            self._loop.add_reader(self._descriptor, self._readable)
            self._is_reading = True

    def _read(self) -> bytes:
        try:
            data = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
        elif self._on_text is not None and not self._capture.is_full:
            self._on_text(self._decoder.decode(data))
        self._capture.data_received(data)
        return data


_ERROR_BYTES = 8_192
_ERROR_SECONDS = 1.0


class PipedProgram:
    """A program with pipes for its standard streams; `open_pipes` creates it."""

    def __init__(
        self,
        tree: ProcessTree,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        output: asyncio.ReadTransport,
    ) -> None:
        self._tree = tree
        self._output = output
        self.reader = reader
        """Its standard output."""
        self.writer = writer
        """Its standard input."""
        self.ended = tree.ended
        """Done when its first process has ended."""
        self.reason = ""
        """Why this server stopped it; empty if it did not."""
        self._errors: OutputPipe | None = None
        self._resources = AsyncExitStack()

    @property
    def pid(self) -> int:
        """The host's process id of the ancestor of all its processes."""
        return self._tree.pid

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when everything has been stopped."""
        self._resources.callback(callback)

    def own(self, resources: AsyncExitStack) -> None:
        """Close these resources when everything has been stopped."""
        self._resources.push_async_callback(resources.aclose)

    def stop_for_limit(self, reason: str) -> None:
        """End its output because of a limit; its reader sees the end and stops the program."""
        self.reason = reason
        if not self._output.is_closing():
            self._output.pause_reading()  # nothing may follow the end
        self.reader.feed_eof()

    def take_errors(self) -> str:
        """Return its standard error since the last call of this method, cut in the middle."""
        return self._errors.take().strip() if self._errors is not None else ""

    def read_errors(self, errors: OutputPipe) -> None:
        """Read its standard error from this pipe from now on."""
        errors.listen(lambda _: None)
        self._errors = errors

    async def stop(self) -> None:
        """Kill every process of it and wait for their end; a second call does nothing."""
        self.writer.close()
        stopping = asyncio.ensure_future(self._settle())
        cancelled: asyncio.CancelledError | None = None
        while not stopping.done():
            try:
                await asyncio.shield(stopping)
            except asyncio.CancelledError as cancellation:  # passed on when all has ended, in a few seconds
                cancelled = cancellation
        if cancelled is not None:
            raise cancelled
        stopping.result()

    async def _settle(self) -> None:
        await self._tree.kill()
        if self._errors is not None:
            await asyncio.wait({self._errors.ended}, timeout=_ERROR_SECONDS)
            self._errors.close()
        await self._resources.aclose()


async def open_pipes(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    inherited: Iterable[int] = (),
    line_bytes: int,
) -> PipedProgram:
    """Start a program, whose reader accepts lines of up to `line_bytes`; raises `OSError` when that fails."""
    loop = asyncio.get_running_loop()
    with ExitStack() as theirs, ExitStack() as ours:
        given, giving = os.pipe()
        reading, written = os.pipe()
        errors, complaining = os.pipe()
        for descriptor in (given, written, complaining):
            theirs.callback(os.close, descriptor)
        giving_file = ours.enter_context(os.fdopen(giving, "wb", 0))
        reading_file = ours.enter_context(os.fdopen(reading, "rb", 0))
        error_pipe = OutputPipe(errors, _ERROR_BYTES)
        ours.callback(error_pipe.close)
        tree = ProcessTree(
            argv, out=written, err=complaining, inherited=inherited, environment=environment, given=given
        )
        reader = asyncio.StreamReader(limit=line_bytes, loop=loop)
        try:
            output, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader, loop=loop), reading_file
            )
            ours.callback(output.close)
            transport, protocol = await loop.connect_write_pipe(
                lambda: asyncio.streams.FlowControlMixin(loop=loop), giving_file
            )
        except BaseException:  # a cancelled start leaves nothing behind
            await tree.kill()
            raise
        ours.pop_all()
    program = PipedProgram(tree, reader, asyncio.StreamWriter(transport, protocol, None, loop), output)
    program.read_errors(error_pipe)
    program.on_end(output.close)
    return program
