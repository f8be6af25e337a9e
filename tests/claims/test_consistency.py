"""Figures of one claim that do not agree with each other, and honest claims with the same figures."""

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

CLINIC = """# The clinic of Varde

The clinic treated 48,350 patients in 2022. In 2017, it treated 39,640 patients.

It has 412 beds, 56 more than in 2017. Of 2,310 calls, 1,710 were answered by the night shift.

Waiting time fell from 64 to 48 days.
"""
MARKS = {"absent", "contradicted"}


async def kinds(text: str) -> set[str]:
    """Return the verdicts on the claims of a text that cites the source."""
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", "The clinic of Varde", "page", CLINIC)
    check = await ReportCheck.of(evidence, researched=True)
    return {claim.verdict.kind for claim in (await check.claim_report([text])).claims}


@pytest.mark.parametrize(
    "text",
    [
        "The number of patients of the clinic grew by 8,710, that is by 18.0 per cent [1].",
        "Die Zahl der Patienten nahm um 8.710 zu, das sind 18,0 Prozent [1].",
        "El número de pacientes creció en 8.710, es decir, un 18,0 % [1].",
        "患者增加8,710人，增幅为18.0%[1]。",
        "The waiting time fell from 64 to 48 days, that is by 75 per cent [1].",
        "Of the 2,310 calls, 1,710 were answered by the night shift, about half [1].",
        "The clinic has 56 beds more than in 2017, when it had 468 [1].",
    ],
)
async def test_figures_that_do_not_agree_are_marked(text):
    assert MARKS & await kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "The number of patients of the clinic grew by 8,710, that is by 22.0 per cent [1].",
        "Die Zahl der Patienten nahm um 8.710 zu, das sind 22,0 Prozent [1].",
        "患者增加8,710人，增幅为22.0%[1]。",
        "The 8,710 patients more than in 2017 made up 18.0 per cent of all patients in 2022 [1].",
        "The waiting time fell from 64 to 48 days, that is by 25 per cent [1].",
        "Of the 2,310 calls, 1,710 were answered by the night shift, almost three quarters [1].",
        "Of the 2,310 calls, 1,710 were answered by the night shift, about half of them at once [1].",
        "The clinic has 56 beds more than in 2017, when it had 356 [1].",
    ],
)
async def test_figures_that_agree_are_not_marked(text):
    assert not MARKS & await kinds(text)
