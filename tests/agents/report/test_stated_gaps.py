"""A report names what is missing, also where the model does not."""

import pytest

from maniple.agents.report_draft import ReportDraft, StatedDraft, UncitedDraft
from maniple.agents.task import StepResult, names_missing
from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio
FAILED = StepResult("coder", "Check the numbers", "", done=False, reason="The table of ferries is empty.")
PARTIAL = StepResult("researcher", "Rates", "3 and 4", lacks="The rate of May is not published.")
DONE = StepResult("coder", "Sum", "4")


async def written(report: str, *results: StepResult) -> list[str]:
    """Return the lines about missing steps in a report that arrives in pieces."""
    draft = StatedDraft(UncitedDraft(await ReportCheck.of(MemoryEvidence())), results)
    shown = [await draft.feed(report[at : at + 7]) for at in range(0, len(report), 7)]
    text = "".join([*shown, await draft.end()])
    assert not report or text.startswith(report)
    return [line for line in text.removeprefix(report).splitlines() if line]


async def test_what_the_report_does_not_speak_of_is_named_at_its_end():
    lines = await written("# Ferries\n\nThey carry cars.", FAILED, DONE, PARTIAL)
    assert [("Check the numbers" in one, "of May" in one) for one in lines] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    "report",
    [
        "To check the numbers was not possible. Of May nothing is known: rates are not published.",
        "The ferries' table turned out empty; the rate for May was never published.",
    ],
)
async def test_what_the_report_says_itself_is_not_said_twice(report):
    assert await written(report, FAILED, PARTIAL) == []


async def test_an_empty_report_stays_empty():
    assert await written("", FAILED) == []


def lacking(what: str, title: str = "Look it up") -> StepResult:
    return StepResult("researcher", title, "…", lacks=f"Missing in it: {what}")


STATED = [
    (
        "The fee of 2019 is behind a login.",
        "The fee of 2019 could not be obtained because the website asks visitors to log in.",
    ),
    ("The fee is behind a login.", "The fee could not be obtained, as the website demands a login."),
    ("The rate of 2019 and out/a.csv.", "## Gaps\n\n- `out/a.csv`, and the rate of 2019"),
    ("Die Gebühr von 2019.", "Die Gebühr von 2019 war nicht zu ermitteln."),
    ("Le tarif de 2019.", "Je n'ai pas le tarif de 2019."),
    ("2019年的费用", "2019年的费用无法获取。"),
    ("The depth of berth 3.", "The depths are known of two berths. Not found:\n\n- berth 3"),
    ("Das Baujahr der Brücke.", "Das Baujahr der Brücke ist nicht bekannt."),
    ("The address of Ms Miller.", "No address of Miller is published."),
    ("The rate of 2019.", "| Year | Rate |\n|---|---|\n| 2019 | n/a |"),
]
OMITTED = [
    ("The depths of berths 1 and 2.", "Berths 1 and 2 lie in the north. They carry ferries; none is free."),
    ("The fee of 2019 is behind a login.", "The fee of 2018 is 12 euros. There is no discount."),
    ("The rate of 2019.", "In 2019, 4 ships came. The rate of 2018 is not 3."),
    ("The opening hours of the museum.", "The museum opened in 1911 and shows ships."),
    ("Die Gebühr von 2019.", "Die Gebühr von 2018 beträgt 12 Euro, nicht 11. Sie gilt für alle."),
    ("Das Baujahr der Brücke.", "Die Brücke ist 312 m lang und trägt keine Züge."),
    ("out/a.csv", "The table is in out/b.csv; nothing was left out."),
]


@pytest.mark.parametrize(("gap", "report"), STATED)
async def test_a_sentence_that_says_that_it_is_not_there_states_a_gap(gap: str, report: str) -> None:
    assert await written(report, lacking(gap)) == []


@pytest.mark.parametrize(("gap", "report"), OMITTED)
async def test_words_of_a_gap_without_a_word_of_absence_state_none(gap: str, report: str) -> None:
    [line] = await written(report, lacking(gap))
    assert gap.rstrip(".") in line and line.count("Missing") <= 1
    assert names_missing(f"{report}\n\n{line}", "Look it up", "")


@pytest.mark.parametrize(
    ("report", "head"),
    [("Die Fähre ist das Schiff der Stadt und fährt täglich.", "Es fehlt"), ("船は毎日出ます。", "不足")],
)
async def test_the_line_about_a_gap_begins_in_the_reports_language(report: str, head: str) -> None:
    [line] = await written(report, lacking("x-7"))
    assert line.startswith(f"**{head}")


async def test_gaps_stand_before_the_sources() -> None:
    evidence = MemoryEvidence()
    await evidence.add("https://tea.test/", "Tea", "page", "It costs 3.")
    draft = StatedDraft(ReportDraft(await ReportCheck.of(evidence)), [FAILED])
    text = await draft.feed("# Tea\n\nIt costs 3 [1].\n") + await draft.end()
    assert 0 < text.index("It costs") < text.index("(Check the numbers)") < text.index("## Sources")
    assert "\n\n## Sources" in text
