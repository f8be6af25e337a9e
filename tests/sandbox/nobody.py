"""An ordinary user for tests that run as root."""

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maniple import sandbox as package

NOBODY = 65534


def _sources_are_public() -> bool:
    here = Path(package.__file__).resolve()
    return all(parent.stat().st_mode & 0o001 for parent in here.parents)


needs_root = [
    # Later Pythons warn of threads; the child touches none.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the tests already run as an ordinary user"),
    pytest.mark.skipif(not _sources_are_public(), reason="this checkout is closed to other users"),
]


@contextmanager
def home_of_nobody() -> Iterator[Path]:
    """A directory that the user `nobody` owns; that of the user, if the tests run as an ordinary one."""
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    try:
        yield home
    finally:
        shutil.rmtree(home)


def as_nobody(action: Callable[[], str]) -> str:
    """Return the result of `action` in a child process as the user `nobody`; of an error, its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            said = action()
        except BaseException:  # noqa: BLE001  the parent is to see it
            said = traceback.format_exc()
        finally:  # the child must not return into the test runner
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said.decode()
