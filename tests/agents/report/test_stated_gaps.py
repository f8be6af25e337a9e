"""A report names what is missing, also where the model does not."""

import pytest

from maniple.agents.report import StatedDraft, UncitedDraft
from maniple.agents.task import MISSING, StepResult
from maniple.evidence import MemoryEvidence
from maniple.evidence.check import SourceCheck

pytestmark = pytest.mark.anyio
FAILED = StepResult("coder", "Check the numbers", "", done=False, reason="The table of ferries is empty.")
PARTIAL = StepResult("researcher", "Rates", "3 and 4", lacks="The rate of May is not published.")
DONE = StepResult("coder", "Sum", "4")


async def written(report: str, *results: StepResult) -> list[str]:
    """Return the lines about missing steps in a report that arrives in pieces."""
    draft = StatedDraft(UncitedDraft(await SourceCheck.of(MemoryEvidence())), results)
    shown = [await draft.feed(report[at : at + 7]) for at in range(0, len(report), 7)]
    text = "".join([*shown, await draft.end()])
    assert not report or text.startswith(report)
    return [line for line in text.splitlines() if line.startswith(MISSING)]


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
