"""The marked claims of earlier reports."""

import pytest

from maniple.claims.earlier_marks import EarlierMarks
from maniple.claims.report_check import ReportCheck, TeamTexts
from maniple.claims.split import find_claims
from maniple.document.nodes import MARK
from maniple.evidence.reasons import ReasonCode, explain
from tests.claims.test_report_check import SOURCES

REPORT = f"""The ferry line carried 4,827,300 passengers in 2024 [1] {MARK}. It has 31 ships [1] {MARK}.

It earned 1.37 billion euros in 2024 [1]. The island has 14.9 thousand inhabitants [1] {MARK}.

| Route | Passengers [1] |
|---|---|
| Harwick | 1,241,000 {MARK} |
| Lindham | 987,500 |
"""
MARKS = EarlierMarks([REPORT], lambda _: 0)
MARKED = explain(ReasonCode.MARKED_BEFORE)


def is_known(text: str, language: str = "de") -> bool:
    (claim,) = find_claims(text)
    return MARKS.find(claim, language) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Die Reederei hatte 2024 insgesamt 4.827.300 Fahrgäste [1].",
        "2024年，该航线运送旅客482.73万人次 [1]。",
        "Nach Harwick fuhren 1.241.000 Fahrgäste [1].",
        "Auf der Insel leben 14.900 Menschen [1].",
    ],
)
def test_a_marked_claim_is_known_again_in_another_language(text):
    assert is_known(text)


@pytest.mark.parametrize(
    "text",
    [
        "Die Reederei hatte 2024 insgesamt 4.872.300 Fahrgäste [1].",  # corrected
        "Die Reederei hatte 2024 insgesamt 4.827.300 Fahrgäste [2].",  # another source
        "Die Reederei hatte 2023 insgesamt 4.827.300 Fahrgäste [1].",  # another year
        "Die Reederei hat 31 Schiffe [1].",  # too short a figure
        "Die Reederei nahm 2024 rund 1,37 Milliarden Euro ein [1].",  # not marked
        "Nach Lindham fuhren 987.500 Fahrgäste [1].",
        "Die Reederei ist zufrieden [1].",
    ],
)
def test_other_claims_are_not(text):
    assert not is_known(text)


def test_a_claim_that_also_stands_unmarked_is_not_known_by_its_figures():
    report = f"It sold 4,210 tickets [1] {MARK}. It bought 4,210 lamps [1]."
    (claim,) = find_claims("Sie kaufte 4.210 Lampen [1].")
    assert EarlierMarks([report], lambda _: 0).find(claim, "de") is None


@pytest.mark.anyio
async def test_a_translation_keeps_the_marks_of_its_report():
    said = TeamTexts(reports=[f"The 31 ships carried 4,900 dogs and cats [2] {MARK}.\n"])
    text = "Die 31 Schiffe beförderten 4.900 Hunde und Katzen [2].\n"
    checks = [await ReportCheck.of(SOURCES, said=one, researched=True) for one in (TeamTexts(), said)]
    reasons = [[found.reasons for found in await check.find_wrong_claims(text)] for check in checks]
    assert MARKED not in reasons[0]
    assert MARKED in reasons[1]
