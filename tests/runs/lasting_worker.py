"""The command `maniple`, but a worker that has lost its runs does not leave: only the fences stop it."""

import sys
from typing import Any

from maniple.cli import main
from maniple.runs.queue.worker import RunWorker

_open = RunWorker.__init__


def _open_lasting(worker: RunWorker, *given: Any) -> None:
    _open(worker, *given, leave=lambda status: None)


if __name__ == "__main__":
    RunWorker.__init__ = _open_lasting  # type: ignore[method-assign]
    sys.exit(main())
