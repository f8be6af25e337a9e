"""The list at the end of a report's file: which claims are not supported, and why."""

import re
from collections.abc import Iterator

from maniple.agents.report_score import remove_score
from maniple.events import ClaimsChecked, ClaimView
from maniple.evidence.source_list import language_of

MAX_ENTRIES = 50
_MARKUP = re.compile(r"([\\`*_\[\]|~$<>])")
_TEXTS = {
    "en": ("Claims that are not supported", "{} more"),
    "de": ("Aussagen ohne Beleg", "{} weitere"),
    "fr": ("Affirmations non étayées", "{} autres"),
    "es": ("Afirmaciones sin respaldo", "{} más"),
    "it": ("Affermazioni senza riscontro", "altre {}"),
    "pt": ("Afirmações sem suporte", "mais {}"),
    "nl": ("Beweringen zonder steun", "nog {}"),
    "ru": ("Утверждения без подтверждения", "ещё {}"),
    "zh": ("没有依据的论断", "另有 {} 条"),
    "ja": ("裏付けのない主張", "ほか {} 件"),
    "ko": ("근거가 없는 주장", "그 외 {}건"),
}
"""The heading of the list, and what stands for the entries that are left out, by language."""


def append_unsupported(markdown: str, checked: ClaimsChecked | None) -> str:
    """Return a report with the list of its claims that are contradicted or absent; as it is without any.

    What claims and reasons have of pages is untrusted: Markdown in them is escaped.
    """
    entries = [*_entries(checked)] if checked is not None else []
    if not entries:
        return markdown
    heading, more = _TEXTS[language_of(remove_score(markdown))]
    lines = [f"- {one}" for one in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"- {more.format(len(entries) - MAX_ENTRIES)}")
    return "\n".join([f"{markdown.rstrip()}\n\n## {heading}\n", *lines, ""])


def _entries(checked: ClaimsChecked) -> Iterator[str]:
    marked = [one for one in checked.claims if one.verdict in ("contradicted", "absent")]
    yield from map(_describe, marked)
    shown = {one.mark for one in marked}
    for one in checked.marked_citations:
        if one.mark not in shown:
            yield f"{_escape(one.text)}: {_escape(one.reason)}"


def _describe(claim: ClaimView) -> str:
    context = " · ".join(filter(None, (claim.row, claim.column)))
    text = f"{context}: {claim.text}" if context else claim.text
    citations = "".join(f"[{number}]" for number in claim.citations)
    return f"{' '.join(filter(None, (_escape(text), citations)))} ({_escape(claim.reason)})"


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
