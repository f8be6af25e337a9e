"""A figure or date without a citation that is in nothing the team read, was told or printed is marked.

The sentences were written before the rules.
"""

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

REQUEST = "Plan a trip along the Aare for 4 people with 1200 francs in 2026."
READ = (
    "Aare",
    "page",
    "The Aare is a river in Switzerland. It is 288 km long. Its source lies at 1936 m. "
    "In Bern its mean flow is 122 m3/s. The gorge railway was built in 1844.",
)
PRINTED = "mean 17.3\ntotal 4521.75\nweeks 62.857142857142854\n"
MARKED = (
    "European deposits yielded 2.7 % on average.",
    "Its basin covers 17779 km2.",
    "北京人口为2185万。",
    "The bridge was opened on 12 May 1883.",
    "The company earned $4.2 billion last year.",
    "Der Umsatz stieg auf 3,4 Mio. Euro.",
    "La ville compte 134 794 habitants.",
    "About 45,000 people visit the gorge every year.",
    "The tower is 324 metres high.",
    "Unemployment fell from 7.1 % to 5.9 %.",
    "El puente mide 1.280 metros.",
    "| River | Length |\n|---|---|\n| Rhine | 1233 km |",
    "- Speed of the train: 305 km/h",
    "The law took effect in 1987.",
    "The survey had 1,482 participants.",
    "Длина реки составляет 3530 км.",
    "信濃川の全長は367キロメートルです。",
    "Satisfaction reached 83 percent.",
    "The temperature peaked at 41.3 °C in Basel.",
    "The Aare is 288 km long and its basin covers 17779 km2.",
)
UNMARKED = (
    "The Aare is 288 km long.",
    "Its source lies 1,936 m above the sea.",
    "The mean is 17.3.",
    "The total comes to 4,521.75 francs.",
    "That is about 62.9 weeks.",
    "For 4 people 1200 francs are enough.",
    "In 2026 the trip is easy.",
    "Two of three cantons agree.",
    "1. Pack a bag.\n2. Take the train.\n3. Walk.",
    "## 2. Results\n\nThe valley is green.",
    "The river flows through Bern and is popular with swimmers.",
    "Per person that is 1200 / 4 = 300 francs.",
    "In Bern 122 cubic metres flow by each second.",
    "阿勒河长288公里。",
    "Der Fluss ist 288 Kilometer lang.",
    "Chapter 3 and figure 2 tell more.",
    "```\ntimeout = 3600\n```",
    "The gorge railway was built in 1844.",
    "The source lies at 1.936 km.",
    "No source gives the number of visitors.",
)


async def _findings(report: str) -> int:
    evidence = MemoryEvidence()
    await evidence.add("https://aare.example/", *READ)
    check = await ReportCheck.of(evidence, [REQUEST], [PRINTED])
    return len(await check.findings(f"{report}\n"))


@pytest.mark.parametrize("report", MARKED)
async def test_what_stands_nowhere_is_marked(report: str) -> None:
    assert await _findings(report) == 1


@pytest.mark.parametrize("report", UNMARKED)
async def test_what_is_known_or_no_claim_is_not_marked(report: str) -> None:
    assert not await _findings(report)
