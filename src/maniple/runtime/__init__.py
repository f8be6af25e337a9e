from maniple.runtime.answering import Answering
from maniple.runtime.compose import Runtime, open_runtime, open_team
from maniple.runtime.stream import stream_run
from maniple.runtime.turn import Start, Turn, drive, remember, run_of, thread_state

__all__ = [
    "Answering",
    "Runtime",
    "Start",
    "Turn",
    "drive",
    "open_runtime",
    "open_team",
    "remember",
    "run_of",
    "stream_run",
    "thread_state",
]
