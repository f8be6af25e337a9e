"""A program that is spoken with through pipes, from its start to its end."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack

from maniple.sandbox.output import Output
from maniple.sandbox.process import Tree

_LAST_WORDS_BYTES = 8_192
_LAST_WORDS_SECONDS = 1.0


class PipedProgram:
    """Input, output and last words of a tree of processes; `open_pipes` makes it."""

    def __init__(self, tree: Tree, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tree = tree
        self.reader = reader
        """What it writes to its standard output."""
        self.writer = writer
        """Its standard input."""
        self.ended = tree.ended
        """Done when its first process has ended."""
        self.reason = ""
        """Why it was stopped by us, if it was."""
        self._errors: Output | None = None
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

    def hear_errors(self, errors: Output) -> None:
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
        heard = Output(errors, _LAST_WORDS_BYTES)
        ours.callback(heard.close)
        tree = Tree(
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
