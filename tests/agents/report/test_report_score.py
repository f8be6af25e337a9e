"""The line at the end of a report that says how many of its claims are supported."""

import pytest

from maniple.agents.report_draft import UncitedDraft
from maniple.agents.report_score import format_score, is_score, may_be_score, remove_score
from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence
from tests.agents.report.research import research_team, script
from tests.openai_server import SIMPLE, reply
from tests.team import data, scripted_team

pytestmark = pytest.mark.anyio
COUNTS = {"supported": 41, "contradicted": 0, "absent": 0, "open": 2, "not_checked": 0}
COUNTS |= {"citations": 43, "supporting_citations": 35}
ENGLISH = "*41 of 43 claims supported, 2 not checked; citations that support their claim: 35*"
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ko")
_LETTERS = {"ru": "мост", "zh": "大桥", "ja": "はし", "ko": "다리"}


def text_in(locale: str) -> str:
    return _LETTERS.get(locale, "")


def test_the_score_names_only_what_there_is():
    assert format_score(COUNTS, "", "en") == ENGLISH
    marked = {**COUNTS, "contradicted": 1, "absent": 2, "open": 0, "citations": 0}
    line = "*41 of 44 claims supported, 1 contradicted, 2 without support*"
    assert format_score(marked, "", "en") == line


@pytest.mark.parametrize("locale", LANGUAGES)
def test_the_score_is_in_the_language_of_the_report_and_found_again(locale):
    all_kinds = {**COUNTS, "contradicted": 3, "absent": 4}
    line = format_score(all_kinds, text_in(locale), locale)
    assert all(f"{number}" in line for number in (41, 50, 3, 4, 2, 35))
    assert (line == format_score(all_kinds, "", "en")) == (locale == "en")
    assert is_score(line)
    assert all(may_be_score(line[:length]) for length in range(1, len(line) + 1))
    report = f"# Bridge\n\nIt is old.\n\n## Sources\n\n- [1] A: <https://a.test>\n\n{line}"
    assert remove_score(report) == report.removesuffix(f"\n\n{line}")
    assert remove_score(f"{line}\n\nIt is old.") == "\n\nIt is old."


@pytest.mark.parametrize(
    "text",
    ["* 41 of 43 claims supported", "**41 of 43 claims supported**", "*41 of 43* claims supported", "# It"],
)
def test_other_text_is_no_score(text):
    assert not is_score(text)
    assert remove_score(text) == text
    assert not may_be_score(text)


async def test_a_report_ends_with_the_one_score_that_code_wrote_and_a_follow_up_does_not_read_it():
    written = "*97 of 97 claims supported*"
    report = f"# The bridge\n\nThe bridge was opened in 1932 [1].\n\n{written}\n"
    async with research_team(report) as team:
        first = await team.run(thread_id="t")
        (event,) = data(first, "claims")
        text = first[-1][1]["messages"][-1]["content"]
        team.server.reset(script("It is old [1]."))
        await team.run("And now?", thread_id="t")
        asked = team.prompts("reporter")[-1]
    assert text.endswith(f"<https://bridge.test/history>\n\n{event['score']}")
    assert event["score"].startswith("*1 of 1 claims supported")
    assert "97" not in text
    assert "opened in 1932" in asked
    assert "claims supported" not in asked


@pytest.mark.parametrize("text", ["It is red.", "As in [7], see https://made.test/up [unverified]."])
async def test_an_answer_without_sources_and_figures_has_no_score(text):
    async with scripted_team({**SIMPLE, "reporter": [reply(text)]}) as team:
        frames = await team.run()
    assert frames[-1][1]["messages"][-1]["content"] == text


async def test_a_score_that_a_model_writes_without_sources_is_not_shown():
    draft = UncitedDraft(await ReportCheck.of(MemoryEvidence()))
    text = f"It is red.\n\n{ENGLISH}\n\n*Note:* it is old.\n"
    shown = [await draft.feed(one) for one in text]
    assert "".join([*shown, await draft.end()]) == text.replace(f"{ENGLISH}\n\n", "")


async def test_a_note_about_the_sandbox_that_a_model_repeats_is_not_shown():
    draft = UncitedDraft(await ReportCheck.of(MemoryEvidence()))
    parts = ["4.\n\n[sand", "box: The sandbox ended; ", "files are kept.]\n\n", "[sandbox]: a word"]
    shown = [await draft.feed(part) for part in parts]
    assert "".join([*shown, await draft.end()]) == "4.\n\n[sandbox]: a word"


async def test_a_note_about_a_file_that_a_model_repeats_is_not_shown():
    draft = UncitedDraft(await ReportCheck.of(MemoryEvidence()))
    parts = [
        "Four.\n\n[this is the te",
        "xt of a.pdf, as the PDF loader reads it]\n\n[this",
        " is](a.pdf) it",
    ]
    shown = [await draft.feed(part) for part in parts]
    assert "".join([*shown, await draft.end()]) == "Four.\n\n[this is](a.pdf) it"
