"""Small pieces of wording that every view shares."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maniple.types import RunStatus

if TYPE_CHECKING:
    from maniple.events import BrowserStepped

STEP_MARKS: Mapping[str, str] = {
    "not_started": "☐",
    "in_progress": "▶",
    "blocked": "!",
    "completed": "✔",
    "failed": "✘",
    "skipped": "–",
}
RUN_MARKS: Mapping[RunStatus, str] = {
    "completed": "✔",
    "failed": "✘",
    "cancelled": "✘",
    "interrupted": "?",
    "budget_exhausted": "!",
}

_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)\b")


def counted(number: int, noun: str) -> str:
    """Return `1 model call`, `1,204 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def file_size(size_bytes: int) -> str:
    """Return `1 byte`, `999 bytes`, `2.0 kB`, `1.5 MB`."""
    if size_bytes < 1000:
        return counted(size_bytes, "byte")
    return f"{size_bytes / 1e3:,.1f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """Return a time as people say it: `0.2 s`, `21 s`, `3 min 05 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def time_ago(seconds: float) -> str:
    """Return how long ago something was: `just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    if seconds < 2 * 86400:
        return f"{seconds // 3600:.0f} h ago"
    return f"{seconds // 86400:.0f} days ago"


def one_line(text: str, longest: int = 400) -> str:
    """Return the text's lines that are not blank as one line, cut with an ellipsis."""
    lines = (" ".join(line.split()) for line in text[: 4 * longest].splitlines())
    line = " ⏎ ".join(part for part in lines if part)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def result_line(text: str, longest: int = 400) -> str:
    """Return a tool's result in one line; of a Python traceback, what it comes to."""
    lines = text.splitlines()
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        errors = [line for line in lines if _EXCEPTION.match(line)]
        text = errors[-1] if errors else text
    return one_line(text, longest) or "(nothing)"


def reason_line(text: str, longest: int = 400) -> str:
    """Return in one line why a step failed."""
    return f"↳ {result_line(text, longest)}"


def arguments_line(arguments: Mapping[str, Any], longest: int = 400) -> str:
    """Return a tool's arguments in one line; a single one goes without its name."""
    shown = {name: value if isinstance(value, str) else _as_json(value) for name, value in arguments.items()}
    if len(shown) == 1:
        return one_line(next(iter(shown.values())), longest)
    return one_line(", ".join(f"{name}={value}" for name, value in shown.items()), longest)


def step_line(step: "BrowserStepped", longest: int = 400) -> str:
    """Return what a step of the browser did and what came of it, in one line; "" while that is open."""
    if step.state != "observing" or not step.action:
        return ""
    parameters = step.action.get("parameters")
    shown = arguments_line(parameters, longest) if isinstance(parameters, Mapping) else ""
    did = " ".join(filter(None, (str(step.number), one_line(str(step.action.get("name"))), shown)))
    mark = "✘ " if step.success is False else ""
    return one_line(f"{did} ({duration(step.seconds)}): {mark}{result_line(step.observation or '')}", longest)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
