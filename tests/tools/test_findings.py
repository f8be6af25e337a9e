"""Members note findings, which are checked against the sources that the run has read."""

import pytest

from maniple.errors import ToolFailure
from maniple.evidence import MemoryEvidence
from maniple.reading.publication import Publication
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.tools.registry import load_tools

pytestmark = pytest.mark.anyio
PAGE = """# The harbour bridge

The bridge was *opened* on 19 March 1932 at a cost of 6.25 million pounds. It did not close during the war,
and about 160,000 [vehicles](https://e.test/cars) cross it each day [4].

The Karsund terminal cost 212 million euros; the Harwick terminal cost 158 million euros.

The council approved the plan in 1924. In the end, the city did not pay for the tram.

| Year | Length |
| --- | --- |
| 1932 | 1,149 m |
"""
URL = "https://e.test/bridge"


@pytest.fixture
async def evidence() -> MemoryEvidence:
    record = MemoryEvidence()
    await record.add(URL, "Harbour bridge", "page", PAGE)
    await record.describe(1, Publication("2021-05-04", "", ""))
    return record


async def note(evidence: MemoryEvidence, statement: str, quote: str, source: object = 1) -> str:
    tool = load_tools()["note_finding"].build({})
    assert tool is not None
    arguments = {"statement": statement, "source": source, "quote": quote}
    return await tool.ainvoke(arguments, {"configurable": {SCOPE_KEY: RunScope(evidence=evidence)}})


async def refused(evidence: MemoryEvidence, statement: str, quote: str, source: object = 1) -> str:
    with pytest.raises(ToolFailure) as caught:
        await note(evidence, statement, quote, source)
    assert await evidence.findings() == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        ("The bridge opened on 19 March 1932.", "The bridge was opened on 19 March 1932"),
        ("The bridge cost £6,250,000.", "opened on 19 March 1932 at a cost of 6.25 million pounds"),
        ("The bridge cost 6.25 million pounds.", "at a cost of 6.25 million pounds."),
        ("It did not close during the war.", "It did not close during the war"),
        ("160,000 vehicles cross the bridge each day.", "about 160,000 vehicles cross it each day"),
        (
            "The bridge opened at a cost of 6.25 million pounds.",
            "The bridge was opened … at a cost of 6.25 million",
        ),
        ("The bridge is 1,149 m long.", "1932 | 1,149 m"),
        ("The council approved the plan.", "“The council approved the plan in 1924”"),
        ("As of May 2021, 160,000 vehicles cross the bridge each day.", "160,000 vehicles cross it each day"),
        ("Die Brücke wurde am 19. März 1932 eröffnet.", "The bridge was opened on 19 March 1932"),
    ],
)
async def test_a_statement_that_its_quote_supports_is_noted_with_the_place(
    evidence, statement, quote
) -> None:
    assert "[1]" in await note(evidence, statement, quote)
    (finding,) = await evidence.findings()
    assert (finding.source, finding.statement) == (1, statement)
    assert PAGE[finding.start : finding.end] == finding.quote
    assert finding.noted_at > 0


@pytest.mark.parametrize(
    ("statement", "quote", "told"),
    [
        ("The bridge opened in 1932.", "The bridge was inaugurated in 1932", "Copy them exactly"),
        ("The bridge cost 6.52 million pounds.", "at a cost of 6.25 million pounds", "6.52"),
        ("The bridge is 1,149 km long.", "1932 | 1,149 m", "1,149 km"),
        ("The bridge cost 6.25 million dollars.", "at a cost of 6.25 million pounds", "dollars"),
        ("The bridge opened on 19 May 1932.", "The bridge was opened on 19 March 1932", "19 May 1932"),
        ("The bridge closed during the war.", "It did not close during the war", "negation"),
        ("The city paid for the tram.", "pay for the tram", "negation"),
        ("The city paid for the tram.", "the city did … pay for the tram", "negation"),
        ("The council did not approve the plan.", "The council approved the plan in 1924", "negation"),
        (
            "The penguins of the south were in their colonies.",
            "The council approved the plan in 1924",
            "in common",
        ),
        ("The bridge opened in 1932.", "1932", "whole sentence"),
        ("Harwick cost 212 million euros.", "The Karsund terminal cost 212 million euros", "something else"),
    ],
)
async def test_what_does_not_agree_goes_back_with_what_to_do(evidence, statement, quote, told) -> None:
    assert told in await refused(evidence, statement, quote)


@pytest.mark.parametrize("source", [2, "[7]", "https://e.test/never", 10**30])
async def test_a_source_that_was_not_read_supports_nothing(evidence, source) -> None:
    assert "Read it first" in await refused(
        evidence, "It opened in 1932.", "was opened on 19 March 1932", source
    )


async def test_a_page_that_could_not_be_read_is_named_with_the_reason(evidence) -> None:
    await evidence.add_unread("https://e.test/wall", "It asks for a login.")
    told = await refused(evidence, "It opened in 1932.", "was opened on 19 March 1932", "https://e.test/wall")
    assert "asks for a login" in told


async def test_a_quote_of_another_source_is_sent_there(evidence) -> None:
    await evidence.add("https://e.test/tram", "Tram", "page", "The tram opened in 1908 as the first one.")
    assert "stand in [2]" in await refused(evidence, "The tram opened in 1908.", "The tram opened in 1908")
    await note(evidence, "The tram opened in 1908.", "The tram opened in 1908", "[2]")
    await note(evidence, "The council approved it in 1924.", "The council approved the plan in 1924", URL)
    assert [one.source for one in await evidence.findings()] == [2, 1]


async def test_the_same_statement_is_noted_once(evidence) -> None:
    for quote in ("was opened on 19 March 1932", "The bridge was opened on 19 March 1932"):
        await note(evidence, "The bridge opened on 19 March 1932.", quote)
    (finding,) = await evidence.findings()
    assert finding.quote.startswith("The bridge")


async def test_only_so_many_findings_are_noted(evidence, monkeypatch) -> None:
    monkeypatch.setattr("maniple.evidence.memory.MAX_FINDINGS", 1)
    await note(evidence, "The bridge opened in March 1932.", "was opened on 19 March 1932")
    with pytest.raises(ToolFailure, match="no more"):
        await note(evidence, "The council approved the plan.", "The council approved the plan in 1924")
