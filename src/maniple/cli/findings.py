"""What `maniple doctor` finds, and how it says so."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from rich.console import Console
from rich.text import Text

from maniple.cli.untrusted import clean
from maniple.cli.view import json_line

Status = Literal["ok", "warning", "problem"]
_MARKS = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "problem": ("✘", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. A `problem` keeps the team from answering; `remedy` says what helps."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def can_answer(findings: Sequence[Finding]) -> bool:
    """Say whether nothing keeps the team from answering."""
    return all(finding.status != "problem" for finding in findings)


def as_json_line(findings: Sequence[Finding]) -> str:
    """Return all findings as one JSON object: `{"ok": …, "checks": [{name, status, detail, remedy}]}`."""
    return json_line({"ok": can_answer(findings), "checks": [asdict(finding) for finding in findings]})


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print a line for each finding, its remedy below it, and the conclusion."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = _MARKS[finding.status]
        name = (f"{finding.name:<{width}}  ", "bold")
        console.print(Text.assemble((f"{mark} ", style), name, clean(finding.detail)), soft_wrap=True)
        for remedy in clean(finding.remedy).splitlines():
            console.print(Text(f"{'':<{width + 4}}→ {remedy}", style=style), soft_wrap=True)
    answers = can_answer(findings)
    words = "The team can answer." if answers else "The team cannot answer: see the lines with ✘."
    console.print(Text(words, style="green" if answers else "red"), soft_wrap=True)
