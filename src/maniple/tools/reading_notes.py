"""The lines in brackets in what tools return: for the model that reads it, not for reports.

Each kind of the tools for files, documents and items is listed here, and those of code in
`maniple.sandbox.notes`.
"""

import re

from maniple.sandbox.notes import is_state

MAX_NOTE_CHARACTERS = 400
"""Longer text in brackets is no note: paths and titles are part of one."""
_KINDS = (
    # How a document is read, and where its lines are.
    r"this is the text of .+, as .+ reads it|.+; this is its text(?:; source=true shows its markup)?",
    r"line \d+ is in: .+|page \d+ of \d+ of .+, as a picture|\S.* is an? \w+ picture of \d.*",
    r"the file's encoding is \S+|\S+ is a binary file of \d+ bytes; work on it with Python instead",
    r"cut here; read on with .+|cut: lines \d+ to \d+ are not shown|read on with \w+\(.+",
    # Lists and searches.
    r"only the first \d+ files are listed|no files|the workspace is empty|empty|\S+ is empty",
    r"and \d+ more names|nothing found in \d+ files.*|names of files; no line matches|.+; narrow the pattern",
    r"lines over \d+ characters were searched in parts of that length",
    r"\d+ more are not shown; name a folder to see it|\d+ files are not searched yet: search again",
    r"nothing has these words|no passage has all words; these have some",
    # Pictures.
    r"The picture is kept as .+|image: .+|an image was left out: .+",
)
_NOTE = re.compile(rf"\[(?:{'|'.join(_KINDS)})\]")


def is_note(block: str) -> bool:
    """Return whether a block of text is one such line, or a note about the sandbox, and nothing else."""
    text = block.strip()
    is_line = len(text) <= MAX_NOTE_CHARACTERS and "\n" not in text
    return is_state(text) or (is_line and _NOTE.fullmatch(text) is not None)


def may_be_note(begun: str) -> bool:
    """Return whether the beginning of a block may still become such a line."""
    text = begun.strip()
    is_open = "]" not in text or is_note(text)
    return text.startswith("[") and len(text) <= MAX_NOTE_CHARACTERS and "\n" not in text and is_open
