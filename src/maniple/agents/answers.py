"""Read what a user answers when a run pauses: yes, do it again, do it so, or no."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACCEPTANCE = frozenset(
    {
        "accept",
        "accepted",
        "[accepted]",
        "approve",
        "approved",
        "yes",
        "y",
        "ok",
        "okay",
        "go",
        "接受",
        "同意",
        "好",
        "好的",
        "可以",
    }
)
APPROVAL = frozenset({"accept", "accepted", "approve", "approved"})
"""What lets a tool run. A message may be taken for the answer, and its "yes" be meant for something else."""
REPETITION = frozenset(
    {"run again", "run it again", "again", "rerun", "re-run", "retry", "再运行", "重新运行"}
)
SKIPPED = "The user chose to skip this call. Whether it had any effect is unknown."


@dataclass(frozen=True, slots=True)
class Approved:
    """Run it as it was shown."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Run it with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Do not run it; `words` may be empty."""

    words: str


def accepts(answer: object) -> bool:
    """Say whether `answer` is a word of acceptance, or `{"type": "approve"}` or `{"type": "accept"}`."""
    return _word(answer) in ACCEPTANCE


def verdict_of(answer: object) -> Approved | Edited | Rejected:
    """Read the answer to a call that waits for approval; what is not the very word rejects it."""
    if _word(answer) in APPROVAL:
        return Approved()
    if isinstance(answer, Mapping):
        arguments = answer.get("args")
        if answer.get("type") == "edit" and isinstance(arguments, Mapping):
            return Edited(arguments)
        return Rejected(str(answer.get("message") or "").strip())
    return Rejected(str(answer).strip())


def wants_repetition(answer: object) -> bool:
    """Say whether a call whose result is unknown is to be run again."""
    return _word(answer) in REPETITION


def stand_in(answer: object) -> str:
    """Return the words that take the place of an unknown result."""
    if isinstance(answer, Mapping):
        answer = answer.get("message") or answer.get("type") or ""
    words = str(answer).strip()
    return SKIPPED if words.casefold() in ("", "skip", "跳过") else words


def _word(answer: object) -> str:
    if isinstance(answer, Mapping):
        answer = str(answer.get("type") or "").replace("_", " ")
    return answer.replace("_", " ").strip().casefold() if isinstance(answer, str) else ""
