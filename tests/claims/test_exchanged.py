"""Figures of a claim that have exchanged their labels, or percentages that are percentage points."""

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

FUND = """# Le fonds de Mirval

Le fonds est financé à 55 % par la ville, à 30 % par le canton et à 15 % par les dons.

Cotton made up 63 % of the cloth, linen 24 % and silk 13 %.

Le taux de remplissage a gagné 2,4 points, à 71,6 %.

The share of linen was 24.7 % in 2016 and 18.2 % in 2021.
"""
MARKS = {"absent", "contradicted"}


async def kinds(text: str) -> set[str]:
    """Return the verdicts on the claims of a text that cites the source."""
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", "Le fonds de Mirval", "page", FUND)
    check = await ReportCheck.of(evidence, researched=True)
    return {claim.verdict.kind for claim in (await check.claim_report([text])).claims}


@pytest.mark.parametrize(
    "text",
    [
        "Le fonds est financé à 55 % par le canton et à 30 % par la ville [1].",
        "Le taux de remplissage a progressé de 2,4 %, à 71,6 % [1].",
        "Der Anteil des Leinens fiel von 2016 bis 2021 um 6,5 Prozent [1].",
    ],
)
async def test_exchanged_labels_and_points_are_marked(text):
    assert MARKS & await kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "Le canton paie 30 % du fonds, la ville 55 % [1].",
        "Linen made up 24 % of the cloth, cotton 63 % [1].",
        "Le taux de remplissage a progressé de 2,4 points, à 71,6 % [1].",
        "Der Anteil des Leinens fiel von 2016 bis 2021 um 6,5 Prozentpunkte [1].",
    ],
)
async def test_the_right_labels_are_not_marked(text):
    assert not MARKS & await kinds(text)


CHANGES = """# Prices

Zinc fell from $3,480 to $2,650 a tonne. The deficit widened to £18.6 million from £11.3 million.

Die Miete sank von 36,8 auf 33,2 Euro. Le forfait passe de 46 à 51 euros. 最快用时由130分钟缩短至48分钟。

Tin rose from $900 to $1,200 and then fell from $1,200 to $900.
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Zinc rose from $2,650 to $3,480 a tonne [1].", 1),
        ("The deficit narrowed to £11.3 million from £18.6 million [1].", 1),
        ("Die Miete stieg von 33,2 auf 36,8 Euro [1].", 1),
        ("Zinc fell to $2,650, from $3,480 [1].", 0),
        ("The deficit grew from £11.3m to £18.6m [1].", 0),
        ("Zinc prices ranged from $2,650 to $3,480 [1].", 0),
        ("Tin fell from $1,200 to $900 [1].", 0),
        ("Tin rose from $900 to $1,200 [1].", 0),
        ("Le forfait augmente de 46 à 51 euros [1].", 0),
    ],
)
async def test_a_change_that_goes_the_other_way_is_marked(text, count):
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", "Prices", "page", CHANGES)
    check = await ReportCheck.of(evidence, researched=True)
    claims = (await check.claim_report([text])).claims
    assert len([one for one in claims if one.verdict.is_marked]) == count
