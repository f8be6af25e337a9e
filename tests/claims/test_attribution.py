"""Who is said to have said it."""

import pytest

from maniple.claims.report_check import ReportCheck
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

LAKE = """Ranger Louise Tarrant said swimming would stay forbidden on the northern shore of the lake.

The water is cold in May.

Ecologist Omar Haddad warned that the banks were unstable.

Divers said the agreement was not an improvement for them.

"It costs money, and we never denied that," said warden Ines Okoro, "but it saves lives in summer."

"We will close the jetty in autumn," she told Jan Verhoeven of the rowing club.

Verhoeven said he had seen it coming.

The chair of the club, Sir Piers Lowther, called the ban "late and half-hearted"."""
SOURCES = Read(
    ("https://www.morningpost.test/lake", "Lake rules | Morning Post", LAKE),
    ("https://evening-echo.test/lake", "Lake depth | Evening Echo", "The lake is 42 metres deep at the dam."),
)


async def reasons(text: str) -> list[str]:
    check = await ReportCheck.of(SOURCES)
    judged = (await check.claim_report([text])).claims
    return [claim.verdict.reason for claim in judged if claim.verdict.is_marked]


async def test_a_quotation_of_somebody_else_is_marked():
    quoted = "“swimming would stay forbidden on the northern shore”"
    assert await reasons(f"Louise Tarrant said {quoted} [1].") == []
    assert len(await reasons(f"Omar Haddad said {quoted} [1].")) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Ines Okoro said “we will close the jetty in autumn” [1].", 0),  # she told Verhoeven
        ("“We will close the jetty in autumn,” Jan Verhoeven was told by Okoro [1].", 0),
        ("Piers Lowther called it “late and half-hearted” [1].", 0),
        ("Ines Okoro called it “late and half-hearted” [1].", 1),
        ("Omar Haddad said “it costs money, and we never denied that” [1].", 1),
    ],
)
async def test_a_quotation_is_marked_only_if_its_source_names_who_speaks(text, count):
    assert len(await reasons(text)) == count


@pytest.mark.parametrize("begin", ["According to", "Cold as it is, it was", "Ranger", "Later"])
async def test_the_first_word_of_a_sentence_is_no_other_speaker(begin):
    quoted = "“swimming would stay forbidden on the northern shore”"
    assert await reasons(f"{begin} the speaker who said {quoted} [1].") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Divers said “the agreement was … an improvement for them” [1].", 1),
        ("Divers said “the agreement was not an improvement …” [1].", 0),
        ("Okoro: “It costs money … but it saves lives in summer” [1].", 0),
        ("Okoro: “It costs money, and we … denied that” [1].", 1),
    ],
)
async def test_an_ellipsis_that_drops_a_negation_is_marked(text, count):
    assert len(await reasons(text)) == count


@pytest.mark.parametrize(
    ("name", "count"), [("Evening Echo", 1), ("Morning Post", 0), ("Louise Tarrant", 0), ("Reuters", 0)]
)
async def test_a_claim_that_names_another_source_than_it_cites_is_marked(name, count):
    assert len(await reasons(f"According to {name}, swimming stays forbidden [1].")) == count
