"""The check of a report: its citations, quotations and claims."""

import hashlib
import time

import pytest

from maniple.claims.report_check import ReportCheck, TeamTexts
from maniple.evidence import MemoryEvidence, NotedFinding
from maniple.evidence.check import MARK, mark_findings
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

RECORD = Read(
    ("https://www.a.test/page/", "Page A", "The bridge was opened in 1932 by the king himself."),
    (
        "https://b.test/?q=1&x=2",
        "Page B",
        "It is painted grey, said the engineer. 大桥于1932年由国王亲自启用通车。",
    ),
)
FERRY = """# Ferry report

The ferry line carried 4,872,300 passengers in 2024. Its revenue reached 1.37 billion euros.

The Karsund terminal cost 212 million euros; the Harwick terminal cost 158 million euros.

| Route | Passengers | Length (km) |
|---|---|---|
| Harwick | 1,214,000 | 48.6 |
| Lindham | 987,500 | 76.0 |
"""
NOTED = "a joy to all who lived on the far shore"
WATER = "The water works delivered 18.4 million cubic metres to the town of Falkenau last year."
SOURCES = Read(("https://ferry.test/r", "Report", FERRY), ("https://water.test/r", "Water", WATER))


async def kinds(text: str, **said) -> list[str]:
    """Return the verdicts on the claims of a text."""
    check = await ReportCheck.of(SOURCES, **said)
    return [claim.verdict.kind for claim in (await check.claim_report([text])).claims]


@pytest.mark.parametrize(
    "text",
    [
        "The line carried about 4.9 million passengers in 2024 [1].",
        "In 2024 the ferries had 4,872,300 passengers, and revenue was 1.37 billion euros [1].",
        "Die Reederei hatte 2024 rund 4,9 Millionen Fahrgäste [1].",
        "The two terminals together cost 370 million euros [1].",
        "Karsund was 54 million euros dearer than Harwick [1].",
        "| Route | Passengers [1] |\n|---|---|\n| Harwick | 1.214 million |",
        "法尔克瑙供水1840万立方米[2]。",
    ],
)
async def test_what_the_cited_source_has_or_gives_is_supported(text):
    assert {*await kinds(text)} == {"supported"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The line carried 4,827,300 passengers in 2024 [1].", "contradicted"),
        ("The revenue of the ferry line reached 1.37 million euros [1].", "contradicted"),
        ("The Karsund terminal cost 158 million euros [1].", "contradicted"),
        ("| Route | Passengers [1] |\n|---|---|\n| Harwick | 987,500 |", "contradicted"),
        ("The water works delivered 18.4 million cubic metres to Falkenau [1].", "contradicted"),
        ("A third ship will carry 1,151 cars [1].", "absent"),
        ("The Karsund terminal of the ferry line has 1,151 cars.", "absent"),
    ],
)
async def test_what_the_cited_source_has_not_is_marked(text, kind):
    assert kind in await kinds(text)
    check = await ReportCheck.of(SOURCES)
    assert MARK in mark_findings(text, await check.findings(text))


@pytest.mark.parametrize(("total", "kind"), [("2,201,500", "supported"), ("2,210,500", "contradicted")])
async def test_the_total_of_a_reports_table_is_added_up(total, kind):
    rows = f"| Harwick | 1,214,000 |\n| Lindham | 987,500 |\n| Total | {total} |"
    assert (await kinds(f"| Route | Passengers [1] |\n|---|---|\n{rows}"))[-1] == kind


@pytest.mark.parametrize(("result", "kind"), [("1,226,140", "supported"), ("1,262,140", "contradicted")])
async def test_written_arithmetic_is_recomputed(result, kind):
    text = f"With the tax it is 1,214,000 + 12,140 = {result}."
    assert await kinds(text, conversation=["12,140"]) == [kind]


async def test_what_the_user_said_needs_no_source():
    text = "A budget of 86,500 euros is enough [1]."
    assert await kinds(text, conversation=["I have 86,500 euros."]) == ["exempt"]


async def test_the_output_of_a_program_supports_a_figure():
    text = "The mean fare is 37.42 euros."
    assert await kinds(text, results=["mean_fare = 37.42"]) == ["supported"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The mean fare was 38.42 euros.", "contradicted"),
        ("At a mean fare of 37.42 euros, 100 seats bring in 3,742 euros.", "supported"),
        ("The ship is 142 metres long.", "absent"),
    ],
)
async def test_without_sources_figures_are_compared_with_what_was_printed(text, kind):
    check = await ReportCheck.of(MemoryEvidence(), results=["mean_fare = 37.42"])
    assert [claim.verdict.kind for claim in (await check.claim_report([text])).claims] == [kind]


@pytest.mark.parametrize(("status", "kind"), [(50345, "open"), (50543, "absent")])
async def test_how_a_page_failed_may_be_told(status, kind):
    evidence = MemoryEvidence()
    await evidence.add("https://ferry.test/r", "Report", "page", FERRY)
    await evidence.add_unread("https://ferry.test/audit", "The site answered with the status 50345.")
    check = await ReportCheck.of(evidence, researched=True)
    text = f"The page about the audit of the Harwick ferry line answered with {status} [1]."
    assert [claim.verdict.kind for claim in (await check.claim_report([text])).claims] == [kind]


async def test_a_source_of_which_nothing_was_read_supports_no_figure():
    evidence = MemoryEvidence()
    await evidence.add("https://empty.test/", "Empty", "result", "")
    check = await ReportCheck.of(evidence)
    judged = (await check.claim_report(["It has 4,872 ships [1]."])).claims
    assert [claim.verdict.kind for claim in judged] == ["absent"]


async def test_a_claim_with_a_marked_citation_gets_one_mark():
    check = await ReportCheck.of(SOURCES)
    text = "A third ship will carry 1,151 cars [7]."
    assert mark_findings(text, await check.findings(text)).count(MARK) == 1


@pytest.mark.slow
async def test_a_long_report_is_judged_in_a_few_seconds():
    words = [
        f"Plant {number} made {number * 37 + 1013} tonnes of steel in the valley of Brune."
        for number in range(6_000)
    ]
    evidence = MemoryEvidence()
    for at in range(20):
        await evidence.add(
            f"https://s{at}.test/", f"Source {at}", "page", "\n".join(words[at * 300 : at * 300 + 1_200])
        )
    check = await ReportCheck.of(evidence)
    report = [" ".join(words[at : at + 20]) + f" [{at // 300 + 1}]" for at in range(0, 2_800, 20)]
    begun = time.process_time()
    judged = await check.claim_report(report)
    assert len(judged.claims) == 2_800
    assert time.process_time() - begun < 20


OPENED, GREY = "opened in 1932", "painted grey, said the engineer"
ROW = "| Bridge | {} |"


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        # The neighbour's source has not the claim's figure, words or quotation.
        (f"{OPENED} [9]; {GREY} [2]", f"{OPENED} [2]; {GREY} [2]", True),  # 1932 stands there, too
        (f"36 metres [9]; {GREY} [2]", f"36 metres [2]; {GREY} [2]", False),
        (f"by the king [9]; {GREY} [2]", f"bridge was royal [2]; {GREY} [2]", False),
        (f"“the bridge was {OPENED}” [9]; {GREY} [2]", f"“the bridge was {OPENED}” [2]; {GREY} [2]", False),
        (f"“the bridge was {OPENED}” [9]; {GREY} [2]", f"“the bridge was {OPENED}” [1]; {GREY} [2]", True),
        (f"{GREY}; {OPENED} [1]", f"{GREY} [1]; {OPENED} [1]", False),
        (f"{GREY}; {OPENED} [1]", f"{GREY} [2]; {OPENED} [1]", True),
        (f"{OPENED} [9] [2]; {GREY} [2]", f"{OPENED} [1] [2]; {GREY} [2]", True),
        # A source that was cited for the claim before stays, also where it is written again.
        (f"36 metres [1]; {GREY} [9]", f"36 metres long [1]; {GREY} [2]", True),
        (f"36 metres [1]; {GREY} [9]", f"{GREY}; 36 metres [1]", True),
        ("In all 1,932 people [9]", "In all 1932 people [1]", True),
    ],
)
async def test_a_repair_cites_for_a_claim_only_what_supports_it(before, after, holds):
    check = await ReportCheck.of(RECORD)
    assert await check.supports_new_citations(ROW.format(before), ROW.format(after)) is holds
    assert await check.supports_new_citations(before, after) is holds


async def with_finding(text: str, source: int = 1) -> list[tuple[str, str]]:
    """Return the verdicts on the claims of a text, and their passages, after a finding was noted."""
    record = MemoryEvidence()
    page = "The old ferry was a joy to all who lived on the far shore, wrote the mayor."
    await record.add("https://ferry.test/r", "Ferries", "page", page)
    await record.add("https://b.test/", "Boats", "page", "Boats are boats.")
    digest = hashlib.sha256(page.encode()).hexdigest()
    start = page.index(NOTED)
    noted = NotedFinding(1, "Islanders loved the vessel.", NOTED, digest, start, start + len(NOTED))
    assert await record.add_finding(noted)
    check = await ReportCheck.of(record)
    claims = (await check.claim_report([text])).claims
    return [(one.verdict.kind, one.verdict.passage.text if one.verdict.passage else "") for one in claims]


@pytest.mark.parametrize("text", ["Islanders loved the vessel [1].", "*Islanders* loved the  vessel.[1]"])
async def test_a_claim_that_repeats_a_finding_is_supported_by_its_words(text):
    assert await with_finding(text) == [("supported", NOTED)]


@pytest.mark.parametrize("text", ["Islanders loved the vessel [2].", "Islanders hated the vessel [1]."])
async def test_a_finding_supports_no_other_claim_and_no_other_citation(text):
    assert [kind for kind, _ in await with_finding(text)] != ["supported"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The mean fare is 37.42 euros.", "supported"),
        ("The mean fare is 34.72 euros.", "contradicted"),
        ("A return ticket for two costs 81.90 euros.", "open"),
    ],
)
async def test_what_a_program_has_printed_counts_more_than_what_its_author_says(text, kind):
    said = ["The mean fare is 34.72 euros; a return ticket for two costs 81.90 euros."]
    check = await ReportCheck.of(MemoryEvidence(), results=["mean fare: 37.42"], said=TeamTexts(said))
    [one] = (await check.claim_report([text])).claims
    assert one.verdict.kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The Karsund terminal cost 221 million euros [1].", "contradicted"),
        ("A pier for pilots cost 36.4 million euros.", "open"),
        ("Its designer called it “a long and very narrow corridor to the sea” [1].", "absent"),
    ],
)
async def test_nothing_is_true_because_an_earlier_report_says_it(text, kind):
    marked = "Its designer called it “a long and very narrow corridor to the sea” [unverified] [1]."
    earlier = f"The Karsund terminal cost 221 million euros [1]. A pier cost 36.4 million euros.\n\n{marked}"
    check = await ReportCheck.of(SOURCES, said=TeamTexts(reports=[earlier]))
    findings = await check.findings(text + "\n")
    assert bool(findings) == (kind != "open")
    [one] = (await check.claim_report([text + "\n"])).claims
    assert one.verdict.kind == ("open" if kind == "absent" else kind)


@pytest.mark.parametrize(
    ("text", "is_asked_about"),
    [
        ("The line carried 4,872,300 passengers in 2024 [1].", True),
        ("The line carried 5,872,300 passengers in 2024 [1].", True),
        ("It grew from 1.0 to 1.2 million: 1.2 - 1.0 = 0.4 million [1].", False),
        ("The route is 48.6 km long [3].", False),
    ],
)
async def test_a_judge_is_asked_about_all_but_what_code_has_proved(text, is_asked_about):
    evidence = MemoryEvidence()
    await evidence.add("https://ferry.test/r", "Report", "page", FERRY)
    await evidence.add("https://water.test/r", "Water", "page", WATER)
    await evidence.add("https://empty.test/", "Empty", "result", "")
    check = await ReportCheck.of(evidence)
    assert bool(await check.find_pending(text)) is is_asked_about
