"""The command `maniple` on a machine whose clock is wrong by the variable SKEW_SECONDS."""

import os
import sys
import time

_SKEW_SECONDS = int(os.environ["SKEW_SECONDS"])
_time, _time_ns = time.time, time.time_ns


def _read_time() -> float:
    return _time() + _SKEW_SECONDS


def _read_time_ns() -> int:
    return _time_ns() + _SKEW_SECONDS * 10**9


if __name__ == "__main__":
    time.time, time.time_ns = _read_time, _read_time_ns
    from maniple.cli import main

    sys.exit(main())
