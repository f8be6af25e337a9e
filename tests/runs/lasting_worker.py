"""The command `maniple`, but a worker that has lost its runs does not leave: only the fences stop it."""

import sys

from maniple.cli import main
from maniple.runs.queue.worker import RunWorker


def _stay(status: int) -> None:
    pass


if __name__ == "__main__":
    RunWorker.__init__.__defaults__ = (_stay,)
    sys.exit(main())
