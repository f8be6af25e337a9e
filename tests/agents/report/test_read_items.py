"""Quotations from what members read of the conversation's own files, such as the user's uploads."""

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from tests.agents.report.research import crawl_tool, script
from tests.agents.report.test_checked_report import report_of
from tests.openai_server import call, reply
from tests.team import scripted_team

pytestmark = pytest.mark.anyio
STRATEGY = "A delay of one month would cost 9,000 passengers. Scores are kept for each month."
QUOTED = "“A delay of one month would cost 9,000 passengers.” (strategy.pdf)"
INVENTED = "“A delay of one year would cost every passenger we have.” (strategy.pdf)"


@tool
async def read_item(path: str) -> str:
    """Read an item."""
    return STRATEGY


@pytest.mark.parametrize(("quotation", "is_marked"), [(QUOTED, False), (INVENTED, True)])
async def test_a_quotation_from_a_file_that_the_researcher_read_is_known(quotation: str, is_marked: bool):
    told = script(f"# Strategy\n\nIt warns: {quotation}.", {"content": "no"})
    told["researcher"] = [call("read_item", path="strategy.pdf"), reply("It warns of a delay.")]
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_tool, read_item]})) as team:
        report = report_of(await team.run())
    assert quotation.split(" (")[0] in report
    assert ("[unverified]" in report) == is_marked
