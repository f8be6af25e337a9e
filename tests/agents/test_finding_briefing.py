"""The reporter is given findings by source, within its room, and what is left out is said."""

from maniple.agents.finding_briefing import format_findings
from maniple.evidence import NotedFinding, Source, SourceKind

ROOM = 10_000


def a_source(number: int, url: str = "https://e.test/", kind: SourceKind = "page") -> Source:
    return Source(number, url, f"Page {number}", kind, 0.0, "")


def a_finding(source: int, statement: str, quote: str = "as it stands") -> NotedFinding:
    return NotedFinding(source, statement, quote, "", 0, 1)


def test_findings_stand_below_their_source_and_its_file():
    sources = [a_source(3), a_source(1, "upload:my%20notes.pdf"), a_source(2, kind="result")]
    findings = [a_finding(1, "One."), a_finding(3, "Three.", "three\nlines"), a_finding(2, "Two.")]
    text = format_findings([*findings, a_finding(3, "Another.")], sources, ROOM, has_files=True)
    lines = text.splitlines()[2:-1]
    assert lines == [
        "[3] Page 3 (file sources/3.md)",
        "- Three.",
        '  "three lines"',
        "- Another.",
        '  "as it stands"',
        "[1] Page 1 (file my notes.pdf)",
        "- One.",
        '  "as it stands"',
        "[2] Page 2",
        "- Two.",
        '  "as it stands"',
    ]


def test_without_findings_there_is_no_text():
    assert format_findings([], [a_source(1)], ROOM) == ""
    assert format_findings([a_finding(2, "Two.")], [a_source(1)], ROOM) == ""


def test_findings_beyond_the_room_and_of_other_sources_are_counted():
    findings = [a_finding(1, f"Statement {n} " + "x" * 200) for n in range(20)]
    text = format_findings([*findings, a_finding(9, "Other.")], [a_source(1)], 300)
    shown = text.count("- Statement")
    assert 0 < shown < 20
    assert f": {20 - shown} findings" in text
    assert ": 1 findings of" in text and "Other." not in text


def test_a_long_quote_is_cut():
    text = format_findings([a_finding(1, "One.", "word " * 400)], [a_source(1)], ROOM)
    assert len(text) < 900
