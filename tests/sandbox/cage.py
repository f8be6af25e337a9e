"""A sandbox without limits of its own, so that what holds is what the test is about."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maniple.sandbox.host import find_python

_VIEW = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm")
_RUN = ("--unshare-all", "--die-with-parent", *_VIEW)


@contextmanager
def caged(code: str, workspace: Path, *, nested: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Start Python in bubblewrap with the files of `workspace`; `nested` as the server does when it is root.

    The code can say a line on stdout and wait for one on stdin.
    """
    bwrap = shutil.which("bwrap")
    assert bwrap, "The tests need bubblewrap."
    outside = [bwrap, "--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--"] if nested else []
    inside = [bwrap, *_RUN, "--bind", str(workspace), "/mnt", "--chdir", "/mnt", "--"]
    # That of the tests may lie in a home that only root can enter.
    python = find_python(None)
    assert isinstance(python, Path), str(python)
    command = [*outside, *inside, str(python), "-u", "-c", code]
    env = {"PATH": os.defpath}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
