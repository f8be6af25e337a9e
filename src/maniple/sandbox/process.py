"""A tree of processes whose lives hang on its leader's, from its start to its end."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

# How long the kernel may take to end a killed tree, on a machine that has much else to do.
_DEATH_SECONDS = 5.0


class Tree:
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
