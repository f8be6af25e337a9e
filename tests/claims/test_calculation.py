"""Figures that follow from those of the sources, and the notations in which sources give them."""

import pytest

from maniple.claims.misplaced import is_miscopied
from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

REPORT = """# Annual figures of the Torvik water board

The board pumped 9.6 million cubic metres in 2024 (2023: 10.2). It has 241,700 customers (2023: 228,400).
Each inhabitant uses 131 litres a day. The oldest reservoir was built in 1887; the board was founded in 1921.

The repair was announced on 4 March 2024. It was finished on 25 March 2024.

The project team reported in the autumn that the total cost of the new pip-
ing had reached 48.3 million euros.

## Investment (€ million)

| Item | Plan | Actual |
|---|---:|---:|
| Pumps | 12.4 | 13.9 |
| Pipes | 41.2 | 48.3 |
| Control room | 6.7 | 5.1 |

## Staff

| | Men | | Women | |
|---|---:|---:|---:|---:|
| | 2020 | 2024 | 2020 | 2024 |
| Torvik | 312 | 298 | 141 | 187 |
| Sund | 88 | 97 | 52 | 61 |

A valve closes at a load of 0.35.
"""
WORDS = """# Olajfalva

A falu 640 millió forintot költött; a lakók 22 százalékát érinti. Az előző évben 290 millió forint volt.
"""


async def kinds(text: str, source: str = REPORT, before: str = "") -> list[str]:
    """Return the verdicts on the claims of a text that cites the source, after an earlier block."""
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", source.partition("\n")[0].lstrip("# "), "page", source)
    check = await ReportCheck.of(evidence, researched=True)
    report = [before, text] if before else [text]
    claims = (await check.claim_report(report)).claims
    return [claim.verdict.kind for claim in claims if claim.text in text or not before]


@pytest.mark.parametrize(
    "text",
    [
        "The board has 241,700 customers, 13,300 or about 6% more than in 2023 [1].",
        "It pumped 600,000 cubic metres less than in 2023 [1].",
        "Each inhabitant uses some 48 cubic metres a year [1].",
        "The oldest reservoir has stood for 137 years, until 2024 [1].",
        "The repair was finished 21 days after it had been announced [1].",
        "The new piping cost €48.3 million [1].",
        "Pumps and pipes together cost €62.2 million [1].",
        "The three items cost 67.3 million euros in all [1].",
        "Torvik employed 46 women more in 2024 than in 2020 [1].",
        "The valve closes at 35% of the load [1].",
    ],
)
async def test_what_follows_from_a_source_is_not_marked(text):
    assert not {"absent", "contradicted"} & {*await kinds(text)}


@pytest.mark.parametrize(
    "text",
    [
        "The board has 247,100 customers [1].",
        "The new piping cost €84.3 million [1].",
        "Each inhabitant uses 113 litres a day [1].",
        "In Sund there are 79 men on the staff [1].",
    ],
)
async def test_a_figure_that_nothing_explains_is_marked(text):
    assert {"absent", "contradicted"} & {*await kinds(text)}


async def test_a_figure_may_follow_from_the_blocks_before_it():
    before = "The works need 5.4 gigawatt hours of energy.\n"
    text = "That is 5.6 kilowatt hours for ten cubic metres, or 0.5625 for each one [1].\n"
    assert not {"absent", "contradicted"} & {*await kinds(text, before=before)}


@pytest.mark.parametrize("day", ["31 April", "30 February", "29 February"])
async def test_a_day_that_does_not_exist_ends_no_check(day):
    text = f"The repair was finished on {day} 2025, 392 days after it had been announced [1]."
    assert len(await kinds(text)) == 1


@pytest.mark.parametrize("text", ["A lakók 22%-a [1].", "A költség 640 millió forintra nőtt [1]."])
async def test_names_of_units_may_have_suffixes(text):
    assert await kinds(text, WORDS) == ["supported"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("In 2024, 298 men worked in Torvik [1].", "supported"),
        ("In 2024, 312 men worked in Torvik [1].", "contradicted"),
        ("In 2024, 187 men worked in Torvik [1].", "contradicted"),
    ],
)
async def test_the_head_of_a_table_may_have_two_rows(text, kind):
    assert await kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "The board has 241,700 customers, which is 94% more than in 2023 [1].",
        "The supply of water is a matter of 131 hectolitres a day for each inhabitant [1].",
        "Pipes cost 43.8 million euros [1].",
    ],
)
async def test_a_figure_that_was_miscopied_is_marked(text):
    assert {"absent", "contradicted"} & {*await kinds(text)}


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        ("314", "341", True),
        ("48", "84", True),
        ("1,240", "1,260", True),
        ("48", "38", False),
        ("400", "450", False),
        ("1,240", "124", False),
    ],
)
def test_a_slip_is_an_exchange_or_one_digit_of_many(one, other, slip):
    assert is_miscopied(one, other) == slip


TOWER = """# The radio tower of Hestvik

The tower belongs to the town. It was closed in May 2019. The oldest lift dates from 1934.

The mast was raised in 1951 to a height of 318 metres. The share of defects fell from 8.4% to 6.1%.

The tower has 214 steps, said the architect Nils Aas. "We never counted them," said the mayor Ida Holm.

| Year | Visitors | School classes |
|---|---:|---:|
| 2021 | 41,300 | 512 |
| 2022 | 58,900 | 634 |
"""


@pytest.mark.parametrize(
    "text",
    [
        "The tower of the town was closed in May 2018 [1].",
        "The mast was raised in 1957 to a height of 318 metres [1].",
        "The share of defects fell by 2.3%, from 8.4% to 6.1% [1].",
        "The number of visitors rose by 143% in 2022 [1].",
        "The visitors of 2021 (41,300) and 2022 (58,900) make 100,300 [1].",
        "In 2022 there were 41,300 visitors [1].",
        "The mast has a height of 318 feet [1].",
        "“We never counted them”, admitted the architect Nils Aas [1].",
    ],
)
async def test_a_date_share_sum_cell_unit_or_speaker_that_differs_is_marked(text):
    assert {"absent", "contradicted"} & {*await kinds(text, TOWER)}


@pytest.mark.parametrize(
    "text",
    [
        "The tower of the town was closed in May 2019 [1].",
        "The share of defects fell by 27%, from 8.4% to 6.1% [1].",
        "The number of visitors rose by 43% in 2022 [1].",
        "The visitors of 2021 (41,300) and 2022 (58,900) make 100,200 [1].",
        "In 2021 there were 41,300 visitors, 30% less than in 2022 [1].",
        "“We never counted them”, admitted the mayor Ida Holm [1].",
    ],
)
async def test_what_agrees_in_them_is_not_marked(text):
    assert not {"absent", "contradicted"} & {*await kinds(text, TOWER)}


DEPOT = """# The depot of Torvik

The depot stores 318 kg of salt and has been open for 47 years. It paid €412 for fuel; 38 percent of the
people came by bus.

The van drove 612 km in 9 hours and its fuel cost €74 for 31 passengers.

| Depot | Value |
|---|---|
| Salt | 318 kg |
| Fuel | €412 |
| Way | 612 km |
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("In total, the depot stores 6.77 kg [1].", "open"),
        ("In total it paid €10.84 [1].", "open"),
        ("Together that is 1,342 kg [1].", "open"),
        ("Each year the depot used up 6.77 kg of salt, on average [1].", "supported"),
        ("The van drove 68 km an hour on average [1].", "supported"),
        ("That is €2.39 per passenger [1].", "supported"),
    ],
)
async def test_a_calculation_with_unlike_units_supports_only_a_rate(text, kind):
    assert await kinds(text, DEPOT) == [kind]


async def test_a_cell_is_not_calculated_from_itself():
    text = "| Depot | Salt [1] | Boats |\n|---|---|---|\n| Torvik | 4,317 tonnes | 0 |\n"
    assert "supported" not in await kinds(text, DEPOT)
