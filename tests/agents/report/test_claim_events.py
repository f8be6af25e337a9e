"""What clients are told about the claims of a report."""

import pytest

from maniple.agents.claim_events import MAX_LISTED_CLAIMS, TEXT_CHARACTERS, ReleasedBlocks, describe_claims
from maniple.claims.verdict import ClaimReport, JudgedClaim, SourcePassage, Verdict, VerdictKind
from maniple.document.nodes import MARK
from maniple.events import ClaimsChecked
from maniple.evidence.check import UnverifiedCitation
from maniple.evidence.citation import Citation
from maniple.evidence.reasons import ReasonCode, explain, join_sentences
from maniple.types import CLAIMS_CHECKED
from tests.agents.report.research import research_team
from tests.team import data

pytestmark = pytest.mark.anyio
RIGHT = "The bridge was opened in 1932 [1]."
WRONG = "The bridge was opened in 1951 [1]."
MADE_UP = "“nobody has ever dared to paint it” [1]."
REPORT = f"# The bridge\n\n{RIGHT}\n\n{WRONG}\n\nIt is said to be {MADE_UP}\n"
WHY = explain(ReasonCode.MAY_BE_CALCULATED, value="5 m")
ABSENT = explain(ReasonCode.IN_NO_SOURCE, value="5 m")


def claim(kind: VerdictKind, passage: SourcePassage | None = None, text: str = "It is 5 m.") -> JudgedClaim:
    return JudgedClaim(text, (1,), Verdict(kind, WHY, passage))


async def test_a_report_sends_the_verdicts_on_its_claims_once_with_their_marks():
    async with research_team(REPORT, "no passage") as team:
        frames = await team.run()
    (event,) = data(frames, "claims")
    report = frames[-1][1]["messages"][-1]["content"]
    counted = {name: event[name] for name in ("supported", "contradicted", "absent", "not_checked", "exempt")}
    assert (counted["supported"], counted["contradicted"] + counted["absent"]) == (1, 2), event
    assert (event["citations"], event["supporting_citations"]) == (3, 1)
    right, wrong, quoted = event["claims"]
    assert (right["verdict"], right["mark"], right["passage"]["source"]) == ("supported", None, 1)
    assert "1932" in right["passage"]["text"]
    assert (wrong["mark"], quoted["mark"]) == (1, 2)
    assert report.split(MARK)[0].endswith(f"{WRONG} "), report
    assert [one["mark"] for one in event["marked_citations"]] == [2]
    assert report.count(MARK) == 2


async def test_an_answer_without_sources_and_figures_sends_none():
    async with research_team("Nobody knows who built it.") as team:
        frames = await team.run()
    counts = [(one["supported"], one["contradicted"], one["absent"]) for one in data(frames, "claims")]
    assert counts in ([], [(0, 0, 0)])


def test_a_suspicion_is_told_as_open_and_without_its_reason():
    event = describe_claims(ClaimReport((claim("suspect"), claim("open"), claim("exempt"))))
    assert (event["open"], event["exempt"]) == (2, 1)
    assert [(one["verdict"], one["reason"]) for one in event["claims"]] == [
        ("open", ""),
        ("open", join_sentences(WHY)),
    ]
    assert [one["reasons"] for one in event["claims"]] == [
        [],
        [{"code": "may_be_calculated", "values": {"value": "5 m"}}],
    ]


def test_only_a_passage_of_a_cited_source_makes_a_citation_support_its_claim():
    passages = [SourcePassage(1, "5 m", 7), SourcePassage(2, "5 m", 7), None]
    judged = tuple(claim("supported", one) for one in passages)
    event = describe_claims(ClaimReport(judged, sources=frozenset({1, 2})))
    assert (event["citations"], event["supporting_citations"]) == (3, 1)


def test_a_claim_in_which_a_citation_is_marked_has_that_mark():
    released = ReleasedBlocks()
    released.add(f"{MARK} stands here.")
    quotation = UnverifiedCitation(
        Citation("quotation", 3, 9, "lengthy"), explain(ReasonCode.WORDS_NOWHERE, words="lengthy")
    )
    whole = UnverifiedCitation(Citation("claim", 0, 12, "a lengthy claim"), ABSENT)
    assert released.add("It x lengthy.", [quotation, whole]).count(MARK) == 1
    assert {one.number for one in released.marks} == {2}
    judged = JudgedClaim("a lengthy claim", (), Verdict("absent", ABSENT), block=1, start=0, end=12)
    event = describe_claims(ClaimReport((judged,)), released.marks)
    assert [one["mark"] for one in (*event["claims"], *event["marked_citations"])] == [2, 2]


def test_of_too_many_claims_those_with_a_mark_are_listed_and_the_rest_is_counted():
    many = [claim("supported", text="word " * 900)] * (2 * MAX_LISTED_CLAIMS) + [claim("absent")]
    event = describe_claims(ClaimReport(tuple(many), left_out=3))
    assert ClaimsChecked.model_validate({"score": "", **event}).data() == {"score": "", **event}
    assert (len(event["claims"]), event["unlisted"]) == (MAX_LISTED_CLAIMS, MAX_LISTED_CLAIMS + 1)
    assert (event["claims"][-1]["verdict"], event["not_checked"]) == ("absent", 3)
    assert max(len(one["text"]) for one in event["claims"]) <= TEXT_CHARACTERS


def test_the_custom_event_becomes_the_event_of_the_wire():
    assert (ClaimsChecked.type, ClaimsChecked.custom_event) == ("claims", CLAIMS_CHECKED)
