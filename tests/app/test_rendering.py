"""The researcher reads a page that only its scripts can write, in the team's own browser."""

from pathlib import Path

import pytest

from tests.app.test_workers import results, script
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
APP = Reply(
    "<title>Shop</title><div id=root></div>"
    "<script>root.innerHTML = '<h1>Tea</h1><p>Tea costs ' + (1 + 2) + ' euros.'</script>"
)


async def test_the_researcher_reads_what_the_scripts_of_a_page_wrote(tmp_path: Path) -> None:
    async with open_site({"/app": APP}) as site:
        told = script("researcher", call("crawl_tool", url=f"{site.url}/app"), reply("Three euros."))
        assert "Tea costs 3 euros." in (await results(told, tmp_path, site))[0]
