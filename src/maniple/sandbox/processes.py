"""A tree of processes whose lives hang on its leader's, from its start to its end."""

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

# How long the kernel may take to end a killed tree, on a machine that has much else to do.
_DEATH_SECONDS = 5.0


class ProcessTree:
    """A program that binds its children's lives to its own, as bwrap does with --die-with-parent."""

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
        """Start it in a session of its own; `given` is what it reads. Raises `OSError` when that fails.

        Not asyncio's subprocess: that one can be cancelled between the fork and the moment we know whom to
        kill. Not in a worker thread: "parent" in die-with-parent means the thread that forked.
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
        """Done when the leader has ended and is no zombie."""
        try:
            self._descriptor = os.pidfd_open(self._process.pid)
        except OSError:
            self._kill_group()
            self._process.wait()
            raise
        self._loop.add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        """The leader's; its own until `ended` is done."""
        return self._process.pid

    async def kill(self) -> None:
        """End every process and wait for the leader's end, ten seconds at most; harmless afterwards."""
        # Until `ended` nobody has waited for the process, so its id is still its own.
        for kill in (self._kill_children, self._kill_group):
            if not self.ended.done():
                kill()
                await asyncio.wait({self.ended}, timeout=_DEATH_SECONDS)

    def _kill_children(self) -> None:
        """Kill what the leader waits for, so that it lives to reap it; with no child yet, its whole group.

        Were the leader killed first, its child would be left to the host's process 1, which in a container
        is often the server and reaps nothing.
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
        # The descriptor says that it has ended, so this does not wait.
        self._process.wait()
        self.ended.set_result(None)


def _children(process: int) -> list[int]:
    """The children of a process with one thread; none on a kernel without that file."""
    try:
        # Nothing on a disk is read here, so nothing is waited for.
        descriptor = os.open(f"/proc/{process}/task/{process}/children", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        return [int(child) for child in os.read(descriptor, 4096).split()]
    except ProcessLookupError:
        return []
    finally:
        os.close(descriptor)


# An endless writer would keep the event loop reading: past the limit it gets a pipe (64 KiB) per pause.
_PAUSE_SECONDS = 0.005
_PIECE_BYTES = 65_536


class TruncatedBuffer:
    """The first and the last half of `limit_bytes`; what came between is counted and dropped."""

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
        """Everything kept, with a line that says how much is missing in the middle."""
        missing = self._total - len(self._head) - len(self._tail)
        notice = f"\n[… {missing} bytes cut …]\n" if missing else ""
        # Decoded together, so that a character across the seam survives when nothing was cut.
        return (bytes(self._head) + notice.encode() + bytes(self._tail)).decode(errors="replace")


class OutputPipe:
    """The reading end of a pipe that many calls print into, one after the other.

    What is printed between two calls, by processes that the first left behind, belongs to the second.
    """

    def __init__(self, descriptor: int, limit_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._limit_bytes = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._capture = TruncatedBuffer(limit_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._heard: Callable[[str], None] | None = None
        self._resumption: asyncio.TimerHandle | None = None
        self._is_wanted = False
        self._is_reading = True
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when nobody holds the other end any more, or this one is closed."""
        self._loop.add_reader(descriptor, self._readable)

    def listen(self, heard: Callable[[str], None] | None) -> None:
        """Let `heard` have each piece from now on, as long as there is room within the limit.

        Until the next `take` whoever prints is never kept waiting for long.
        """
        self._heard = heard
        self._is_wanted = True
        self._resume()

    def take(self) -> str:
        """All that has been printed until now; the next text begins after it."""
        self._drain()
        text, self._capture = self._capture.text(), TruncatedBuffer(self._limit_bytes)
        self._heard = None
        self._is_wanted = False
        self._decoder.reset()
        return text

    def close(self) -> None:
        """Stop reading; a second time does nothing."""
        if self._descriptor < 0:
            return
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        self.ended.set_result(None)

    def _drain(self) -> None:
        """Read what is there now, and not what a writer adds meanwhile."""
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
        # Between calls nobody wants more than there is room for: the pipe fills, and its writers wait.
        if self._is_wanted:
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
        elif self._heard is not None and not self._capture.is_full:
            self._heard(self._decoder.decode(data))
        self._capture.data_received(data)
        return data


_LAST_WORDS_BYTES = 8_192
_LAST_WORDS_SECONDS = 1.0


class PipedProgram:
    """Input, output and last words of a tree of processes; `open_pipes` makes it."""

    def __init__(self, tree: ProcessTree, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tree = tree
        self.reader = reader
        """What it writes to its standard output."""
        self.writer = writer
        """Its standard input."""
        self.ended = tree.ended
        """Done when its first process has ended."""
        self.reason = ""
        """Why it was stopped by us, if it was."""
        self._errors: OutputPipe | None = None
        self._kept = AsyncExitStack()

    @property
    def pid(self) -> int:
        """The host's id of the process from which all others descend."""
        return self._tree.pid

    def at_end(self, farewell: Callable[[], object]) -> None:
        """Call `farewell` once, when everything has been stopped."""
        self._kept.callback(farewell)

    def keep(self, opened: AsyncExitStack) -> None:
        """Close what was `opened` for it, when everything has been stopped."""
        self._kept.push_async_callback(opened.aclose)

    def overrun(self, reason: str) -> None:
        """End its output for a limit's sake: whoever reads it hears the end, and stops the rest."""
        self.reason = reason
        self.reader.feed_eof()

    def last_words(self) -> str:
        """Return what it wrote to its standard error since this was asked last, cut in the middle."""
        return self._errors.take().strip() if self._errors is not None else ""

    def hear_errors(self, errors: OutputPipe) -> None:
        """Take the pipe of its standard error over."""
        errors.listen(lambda _: None)
        self._errors = errors

    async def stop(self) -> None:
        """End every process of it, and wait for their end; a second time does nothing."""
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
            await asyncio.wait({self._errors.ended}, timeout=_LAST_WORDS_SECONDS)
            self._errors.close()
        await self._kept.aclose()


async def open_pipes(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    inherited: Iterable[int] = (),
    line_bytes: int,
) -> PipedProgram:
    """Start a program; its reader takes lines of up to `line_bytes`. Raises `OSError` when that fails."""
    loop = asyncio.get_running_loop()
    with ExitStack() as theirs, ExitStack() as ours:
        given, giving = os.pipe()
        reading, written = os.pipe()
        errors, complaining = os.pipe()
        for descriptor in (given, written, complaining):
            theirs.callback(os.close, descriptor)
        giving_file = ours.enter_context(os.fdopen(giving, "wb", 0))
        reading_file = ours.enter_context(os.fdopen(reading, "rb", 0))
        heard = OutputPipe(errors, _LAST_WORDS_BYTES)
        ours.callback(heard.close)
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
    program = PipedProgram(tree, reader, asyncio.StreamWriter(transport, protocol, None, loop))
    program.hear_errors(heard)
    program.at_end(output.close)
    return program
