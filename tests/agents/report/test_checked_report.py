"""The reporter's words through the whole team: what was read is shown, what was not is repaired or marked."""

import pytest

from maniple.agents.report_score import remove_score
from tests.agents.report.research import URL, research_team
from tests.openai_server import reply
from tests.team import data, joined_text

pytestmark = pytest.mark.anyio

RIGHT = "It is old: “The bridge was opened in 1932 by the king himself” [1]."
ALTERED = "It is grey: “nobody has ever dared to paint it since” [1]."
INVENTED = "See [the archive](https://archive.test/bridge) for more."
DRAFT = f"# The bridge\n\n{RIGHT}\n\n{ALTERED}\n\n{INVENTED}\n\nThat is all.\n"
LIST = f"## Sources\n\n- [1] History of the bridge: <{URL}>\n"
MENDED = (
    '<passage number="1">It is grey: “nobody has painted it since that day” [1].</passage>\n'
    '<passage number="2">See [its history](https://bridge.test/history) for more.</passage>'
)


def report_of(frames) -> str:
    """Return the report as clients see it, which is what the conversation holds of it, without its score."""
    shown = "".join(one["delta"].get("content", "") for one in _messages_of_the_reporter(frames))
    kept = data(frames, "end_of_workflow")[0]["messages"][-1]["content"]
    assert shown.strip() == kept
    return remove_score(kept)


def _messages_of_the_reporter(frames):
    begin = next(n for n, (_, one) in enumerate(frames) if one.get("agent_name") == "reporter")
    return [one for name, one in frames[begin:] if name == "message"]


async def test_an_invented_address_and_an_altered_quotation_are_repaired():
    async with research_team(DRAFT, MENDED) as team:
        report = report_of(await team.run())
        asked = team.prompts("reporter")
    assert (
        report
        == (
            f"# The bridge\n\n{RIGHT}\n\nIt is grey: “nobody has painted it since that day” [1].\n\n"
            f"See [its history]({URL}) for more.\n\nThat is all.\n\n{LIST}"
        ).strip()
    )
    assert len(asked) == 2
    assert RIGHT not in asked[1]
    assert "in [1]: nobody has ever" in asked[1]
    assert "https://archive.test/bridge was not opened" in asked[1]
    assert "nobody has painted it since that day" in asked[1], "what stands there is shown"


@pytest.mark.parametrize(
    "answer",
    [
        '<passage number="1">It is grey: “nobody would paint it for a million” [1].</passage>'
        '<passage number="2">See https://other.test/bridge for more.</passage>',
        "I am sorry, I cannot do that.",
        '<passage number="1"></passage><passage number="7">x</passage>',
        '<passage number="2">```\nSee nothing.</passage>',
        reply("", status=500, error="out of order"),
        reply(MENDED, cut_after=3),
    ],
)
async def test_only_what_cannot_be_repaired_is_marked(answer):
    async with research_team(DRAFT, answer) as team:
        report = report_of(await team.run())
        assert team.server.stats["by_role"]["reporter"] == 2
    assert (
        report
        == (
            f"# The bridge\n\n{RIGHT}\n\n{ALTERED[:-5]} [unverified] [1].\n\n"
            f"See [the archive](https://archive.test/bridge) [unverified] for more.\n\nThat is all.\n\n{LIST}"
        ).strip()
    )


async def test_a_report_that_holds_costs_no_call_more_and_streams_block_by_block():
    async with research_team(f"# The bridge\n\n{RIGHT}\n\nThe end.\n") as team:
        frames = await team.run()
        assert team.server.stats["by_role"]["reporter"] == 1
    whole = f"# The bridge\n\n{RIGHT}\n\nThe end.\n\n{LIST}"
    assert remove_score(joined_text(frames)).rstrip().endswith(whole.rstrip())
    assert report_of(frames).endswith(LIST.strip())


async def test_blocks_are_shown_before_the_report_is_written():
    first = {"chunks": ["# The bridge\n\n", f"{RIGHT}\n\n", "The e"], "delay_seconds": 0, "cut_after": 4}
    whole = reply(f"# The bridge\n\n{RIGHT}\n\nThe end.\n")
    async with research_team(first, whole) as team:
        frames = await team.run()
    shown = [one["delta"]["content"] for one in _messages_of_the_reporter(frames)]
    assert "".join(shown).startswith(f"# The bridge\n\n{RIGHT}\n\n")
    assert len(shown) >= 3
    whole = f"# The bridge\n\n{RIGHT}\n\nThe end.\n\n{LIST}"
    assert remove_score("".join(shown)).rstrip() == whole.rstrip(), "nothing twice after a new try"


async def test_thoughts_pass_and_repairs_are_counted_but_not_streamed():
    async with research_team({"text": DRAFT, "reasoning": "hm"}, {"text": MENDED, "reasoning": "oh"}) as team:
        frames = await team.run()
    assert next(one["delta"] for one in _messages_of_the_reporter(frames)) == {"reasoning_content": "hm"}
    assert "oh" not in joined_text(frames, "reasoning_content")
    assert "<passage" not in joined_text(frames)
    usage = [one for one in data(frames, "usage") if one["agent_name"] == "reporter"]
    assert len(usage) == 2
    assert all(one["input_tokens"] and one["output_tokens"] for one in usage)
    reporter = [(name, one.get("agent_name")) for name, one in frames]
    pairs = [name for name, agent in reporter if agent == "reporter" and name.endswith("_llm")]
    assert pairs == ["start_of_llm", "end_of_llm"]


async def test_a_list_that_the_model_wrote_is_replaced_by_the_record():
    draft = f"# The bridge\n\n{RIGHT}\n\n### Works cited\n\n1. http://evil.test/\n2. B\n\n#### More\n\n- c\n"
    async with research_team(draft) as team:
        report = report_of(await team.run())
        assert team.server.stats["by_role"]["reporter"] == 1
    assert report == f"# The bridge\n\n{RIGHT}\n\n{LIST}".replace("## Sources", "## Works cited").strip()


async def test_words_under_a_heading_that_is_called_like_a_list_of_sources_are_shown():
    draft = f"# Sources\n\n{RIGHT}\n\n## References\n\nThe king is one.\n\n"
    async with research_team(f"{draft}## Sources\n\n- B\n\n**Limits:** one page.\n") as team:
        report = report_of(await team.run())
    assert report == f"{draft}**Limits:** one page.\n\n{LIST}".strip()


async def test_a_page_cannot_have_an_address_cited():
    async with research_team("# B\n\nSo it is, http://evil.test/ [1].\n", "no") as team:
        report = report_of(await team.run())
    assert "http://evil.test/ [unverified] [1]." in report
    assert report.endswith(LIST.strip())


async def test_a_chinese_report_is_checked_and_its_list_has_a_chinese_heading():
    right, altered = "「大桥于1932年由国王亲自启用通车」[1]。", "「大桥于1933年由市长亲自启用通车」"
    async with research_team(f"# 大桥\n\n{right}\n\n{altered}[1]，见https://evil.test/a。\n", "不") as team:
        report = report_of(await team.run("大桥？"))
    assert report == (
        f"# 大桥\n\n{right}\n\n{altered} [unverified][1]，见https://evil.test/a [unverified]。\n\n"
        + LIST.replace("Sources", "来源").strip()
    )


async def test_the_reporter_is_shown_the_sources_by_number():
    async with research_team("# B\n\nfine [1]\n") as team:
        await team.run()
        assert f"[1] History of the bridge: {URL}" in team.prompts("reporter")[0]


async def test_what_the_user_named_may_be_named_again():
    async with research_team("# B\n\nAs on https://mine.test/page, so [1].\n") as team:
        report = report_of(await team.run("What of https://mine.test/page ?"))
        assert team.server.stats["by_role"]["reporter"] == 1
    assert "unverified" not in report


async def test_an_address_of_an_earlier_report_of_the_thread_is_not_invented():
    first, second = (
        "# B\n\nSee https://mine.test/page [1].\n",
        f"# B\n\nStill {URL}, https://mine.test/page.\n",
    )
    async with research_team(first, second) as team:
        await team.run("See https://mine.test/page", thread_id="t")
        frames = await team.run("And now?", thread_id="t")
    assert "unverified" not in joined_text(frames)
