"""The verdicts of a report's claims."""

from maniple.claims.verdict import ClaimReport, JudgedClaim, SourcePassage, Verdict, join_reasons, most_severe
from maniple.evidence.reasons import ReasonCode, explain

RIGHT = Verdict(
    "supported",
    explain(ReasonCode.STANDS_IN_SOURCE, source="[1]", value="5"),
    SourcePassage(1, "It has 5 arches.", 0),
)
UNKNOWN = Verdict("open", explain(ReasonCode.MAY_BE_CALCULATED, value="6"))
WRONG = Verdict(
    "contradicted",
    explain(ReasonCode.OTHER_VALUE, source="[1]", found="7", value="5"),
    SourcePassage(1, "It has 7 arches.", 0),
)
MISSING = Verdict("absent", explain(ReasonCode.IN_NO_SOURCE, value="23"))


def test_the_worst_verdict_decides_a_claim():
    assert most_severe([RIGHT, MISSING, WRONG, UNKNOWN]) is WRONG
    assert most_severe([RIGHT, UNKNOWN]) is UNKNOWN


def test_a_claim_with_nothing_to_check_is_exempt():
    assert most_severe([]).kind == "exempt"


def test_all_reasons_for_a_mark_are_given_once():
    joined = join_reasons([WRONG, RIGHT, MISSING, WRONG])
    assert joined == Verdict("contradicted", WRONG.reasons + MISSING.reasons, WRONG.passage)
    assert join_reasons([RIGHT, WRONG]) == WRONG


def test_only_contradicted_and_absent_claims_are_marked():
    kinds = ("supported", "contradicted", "absent", "suspect", "open", "exempt")
    assert [kind for kind in kinds if Verdict(kind).is_marked] == ["contradicted", "absent"]


def test_a_report_counts_its_claims_by_verdict():
    claims = tuple(JudgedClaim("It has arches.", (1,), one) for one in (RIGHT, WRONG, RIGHT))
    assert ClaimReport(claims).counts == {"supported": 2, "contradicted": 1}
