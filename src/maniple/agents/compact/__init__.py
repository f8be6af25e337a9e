from maniple.agents.compact.language import examples_for, language_of, spoken_in
from maniple.agents.compact.lookup import Browsing, Research
from maniple.agents.compact.program import ProgramWriter
from maniple.agents.compact.report import ShortReport
from maniple.agents.compact.steps import PROMPT_ONLY, worked

__all__ = [
    "PROMPT_ONLY",
    "Browsing",
    "ProgramWriter",
    "Research",
    "ShortReport",
    "examples_for",
    "language_of",
    "spoken_in",
    "worked",
]
