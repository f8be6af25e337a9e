from maniple.runtime.answering import Answering
from maniple.runtime.compose import Runtime, open_runtime, open_team
from maniple.runtime.stream import stream_run

__all__ = ["Answering", "Runtime", "open_runtime", "open_team", "stream_run"]
