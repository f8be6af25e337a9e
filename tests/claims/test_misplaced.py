"""Figures and dates that a source has for something else, and honest claims that only look like these."""

import pytest

from maniple.claims.dates import find_dates
from maniple.claims.report_check import ReportCheck
from maniple.claims.source_index import join_lines
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

MILLS = """# The mills of Tarrow

Nylon cord (38 %), woven canvas (26 %) and plain cotton (17 %) were the most common fabrics.

The dam is below the warning mark (Wm) of 940 metres, but stands above the lowest level
(Lm) of 770 metres. Power came to 51 GWh.

| Output (tonnes) | 2018 | 2019 | 2020 | 2021 |
|---|---|---|---|---|
| Nylon | 41.2 | 39.6 | 48.9 | 45.3 |
| Cotton | 18.7 | 17.5 | 19.8 | 21.4 |

| Costs | 2020 | 2021 |
|---|---|---|
| Wages | 712 | 745 |
| Haulage (billion) | 12.4 | 27.4 |
| Total | 2,587 | 2,719 |
"""


async def kinds(text: str, source: str = MILLS) -> set[str]:
    """Return the verdicts on the claims of a text that cites the source."""
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", source.partition("\n")[0].lstrip("# "), "page", source)
    check = await ReportCheck.of(evidence, researched=True)
    return {claim.verdict.kind for claim in (await check.claim_report([text])).claims}


@pytest.mark.parametrize(
    "text",
    [
        "Fabrics by share: nylon 38%, canvas 26%, cotton 17% [1].",
        "The dam stands below the warning mark but above the lowest level of 770 metres [1].",
        "From 2018 to 2021, the output of nylon was between 39.6 and 48.9 tonnes [1].",
        "Wages made up 27% of the total costs in 2021 [1].",
    ],
)
async def test_an_honest_claim_is_not_marked(text):
    assert not {"absent", "contradicted"} & await kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "In 2018 the output of nylon was 48.9 tonnes [1].",
    ],
)
async def test_a_figure_of_something_else_is_marked(text):
    assert {"absent", "contradicted"} & await kinds(text)


@pytest.mark.parametrize(("following", "lines"), [("(Lm) of 770 metres.", 1), ("(a) to close the dam", 2)])
def test_a_wrapped_line_may_go_on_with_a_bracket(following, lines):
    found = join_lines(f"It is above the lowest level\n{following}")
    assert len(found) == lines


@pytest.mark.parametrize(("language", "count"), [("fr", 1), ("en", 0)])
def test_a_small_month_is_sure_in_its_own_language(language, count):
    assert len(find_dates("le 24 mai, et", language)) == count


DATELINES = {
    "en": "# The harbour of Ostrel\n\nAnna Reed, Port Review, 3 May 2011\n\nThe harbour was opened in 1987.",
    "edited": "# Ostrel harbour\n\nOstrel harbour, entry of PortBase by quay7, 3 May 2011\n\nOpened: 1987",
    "de": "# Der Hafen\n\nVon Anna Reed, Hafenblatt, 3. Mai 2011\n\nDer Hafen wurde im Juni 1987 eröffnet.",
}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("en", "According to Anna Reed in the Port Review, it opened in 1987 [1]."),
        ("en", "| Page | Opening |\n|---|---|\n| Anna Reed, Port Review | 1987 [1] |"),
        ("edited", "| Page | Opening |\n|---|---|\n| PortBase, entry of quay7 | 1987 [1] |"),
        ("de", "Laut Anna Reed im Hafenblatt wurde er im Juni 1987 eröffnet [1]."),
    ],
)
async def test_who_published_a_source_and_when_gives_no_other_date(source, text):
    assert not {"absent", "contradicted"} & await kinds(text, DATELINES[source])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("en", "According to Anna Reed in the Port Review, the harbour opened in 1997 [1]."),
        ("de", "Laut Anna Reed im Hafenblatt wurde der Hafen im Juli 1987 eröffnet [1]."),
    ],
)
async def test_a_wrong_date_beside_the_name_of_its_source_is_marked(source, text):
    assert {"absent", "contradicted"} & await kinds(text, DATELINES[source])
