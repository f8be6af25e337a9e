"""`maniple db move` in a process that kills itself (SIGKILL) when the move reports for the Nth time.

`python -m tests.store.dying_move N ARGUMENTS…` is the command `maniple ARGUMENTS…`.
"""

import os
import signal
import sys
from typing import Any

from maniple.cli import main, store_admin


def dying(number: int) -> type[Any]:
    """Return a reporter of progress whose Nth report is the end of the process."""

    class DyingProgress:
        def __init__(self) -> None:
            self._reports = 0

        def __call__(self, table: str, done: int, total: int) -> None:
            self._reports += 1
            if self._reports == number:
                os.kill(os.getpid(), signal.SIGKILL)

    return DyingProgress


if __name__ == "__main__":
    setattr(store_admin, "_MoveProgress", dying(int(sys.argv[1])))  # noqa: B010 - it is private
    sys.argv[1:] = sys.argv[2:]
    main()
