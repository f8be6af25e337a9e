"""The lines in brackets that are added to the output of code: for the model that reads it, not for reports.

Each kind is listed here, so that one place tells them from what the code itself printed.
"""

import re

SILENCE = "[no output; print what you want to see]"
_STATE = "[sandbox: "
_KINDS = (
    r"sandbox: |stderr\]|timeout: stopped after |exit code \d|took \d|no output; print |stopped: it printed ",
    r"not (?:brought out of|in) the sandbox: |only the first \d+ figures ",
    r"a figure (?:of \d+ bytes )?was not kept|figures drawn: |files written: ",
    r"over \d+ MB and not shown to you: ",
    r"[\w-]+/ holds the team's own records ",
)
_NOTE = re.compile(rf"\[(?:{'|'.join(_KINDS)}).*")


def format_state(sentence: str) -> str:
    """Return the note about what happened to the sandbox itself."""
    return f"{_STATE}{sentence}]"


def drop_notes(output: str) -> str:
    """Return what the code printed, without the notes."""
    return "\n".join(line for line in output.splitlines() if not _is_note_line(line)).strip()


def read_notes(output: str) -> str:
    """Return the notes without what the code printed."""
    return "\n".join(filter(_is_note_line, output.splitlines()))


def is_state(block: str) -> bool:
    """Return whether a block of text is a note about the sandbox and nothing else."""
    text = block.strip()
    return text.startswith(_STATE) and text.endswith("]") and "\n" not in text


def _is_note_line(line: str) -> bool:
    stripped = line.strip()
    return stripped.endswith("]") and _NOTE.fullmatch(stripped) is not None
