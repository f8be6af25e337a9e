from maniple.runtime.models import Answering
from maniple.runtime.turn import Start, Turn, drive, remember, run_of, stream_run, thread_state

__all__ = [
    "Answering",
    "Start",
    "Turn",
    "drive",
    "remember",
    "run_of",
    "stream_run",
    "thread_state",
]
