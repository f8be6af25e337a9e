"""The limit of the search for calculations."""

import pytest

from maniple.claims import context
from maniple.claims.context import CalculationBudget
from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

SOURCE = "# Mill\n\nThe mill at Orvik ground 4,217 tonnes of rye and 1,938 tonnes of oats.\n"


@pytest.mark.parametrize(("limit", "kind"), [(0, "open"), (context.MAX_CALCULATED, "absent")])
async def test_a_figure_that_was_not_calculated_is_open(monkeypatch, limit, kind):
    monkeypatch.setattr(
        "maniple.claims.check.CalculationBudget", lambda: CalculationBudget(limit), raising=True
    )
    evidence = MemoryEvidence()
    await evidence.add("https://mill.test/", "Mill", "page", SOURCE)
    check = await ReportCheck.of(evidence, researched=True)
    check.start_report()
    await check.findings("Nothing.\n")
    check.start_report()
    report = await check.claim_report(["The baker at Orvik bought 8,731 sacks of flour [1].\n"])
    assert [claim.verdict.kind for claim in report.claims] == [kind]
