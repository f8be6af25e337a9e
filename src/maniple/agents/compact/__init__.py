from maniple.agents.compact.language import language_of, spoken_in
from maniple.agents.compact.lookup import Browsing, Research
from maniple.agents.compact.program import ProgramWriter
from maniple.agents.compact.report import ShortReport
from maniple.agents.compact.steps import worked

__all__ = [
    "Browsing",
    "ProgramWriter",
    "Research",
    "ShortReport",
    "language_of",
    "spoken_in",
    "worked",
]
