from maniple.agents.compact.language import is_chinese, language_of, spoken_in
from maniple.agents.compact.lookup import Browsing, Research
from maniple.agents.compact.program import ProgramWriter
from maniple.agents.compact.report import ShortReport
from maniple.agents.compact.steps import call_tool, worked

__all__ = [
    "Browsing",
    "ProgramWriter",
    "Research",
    "ShortReport",
    "call_tool",
    "is_chinese",
    "language_of",
    "spoken_in",
    "worked",
]
