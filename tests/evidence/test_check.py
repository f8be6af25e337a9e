"""What of a report holds."""

import random
import time

import pytest

from maniple.evidence.check import SourceCheck, mark_findings
from maniple.evidence.source_list import ModelSourceList, format_source_list, heading_for
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


async def wrong(text: str, **said) -> list[str]:
    check = await SourceCheck.of(RECORD, **said)
    return [finding.citation.text for finding in await check.findings(text)]


@pytest.mark.parametrize(
    "text",
    [
        "[A](http://a.test/page?utm_source=x#top) and <https://b.test?q=1&x=2>",
        "a [1] and b [1, 2]",
        "It says “the bridge was opened in 1932” [1].",
        "It says “it is painted grey, said the engineer”.",
        "大桥于1932年启用：「由国王亲自启用通车。」[2]",
        "> The bridge was opened […] by the king himself.",
        "Run it at http://localhost:8000/ for yourself.",
    ],
)
async def test_a_citation_of_what_was_read_is_not_wrong(text):
    assert await wrong(text) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[A](https://a.test/other)", "https://a.test/other"),
        ("https://b.test/?q=2&x=2", "https://b.test/?q=2&x=2"),
        ("so [1] and so [1, 3]", "[1, 3]"),
        ("It says “the bridge was opened in 1933” [1].", "the bridge was opened in 1933"),
        ("It says “the bridge was opened in 1932” [2].", "the bridge was opened in 1932"),
        ("> The bridge was closed by the king.", "The bridge was closed by the king."),
        ("「大桥于1933年由国王亲自启用通车」", "大桥于1933年由国王亲自启用通车"),
    ],
)
async def test_what_was_not_read_is_found(text, what):
    assert await wrong(text) == [what]


async def test_on_this_machine_too_an_address_of_a_page_must_have_been_read():
    read = Read(("http://127.0.0.1:8765/a", "A", "The river rose."))
    check = await SourceCheck.of(read)
    text = (
        "http://127.0.0.1:8765/a and http://localhost:8000 hold; http://127.0.0.1:8765/invented-page, "
        "http://localhost:8765/, http://localhost:8000/docs and http://[::1]:8000/?q=1 do not"
    )
    assert [finding.citation.text for finding in await check.findings(text)] == [
        "http://127.0.0.1:8765/invented-page",
        "http://localhost:8765/",
        "http://localhost:8000/docs",
        "http://[::1]:8000/?q=1",
    ]


async def test_texts_of_the_user_and_earlier_reports_are_valid_except_marked_ones():
    said = ["look at https://c.test/x and “a saying of the user”", "see https://d.test [unverified]"]
    assert await wrong("https://c.test/x is it, “a saying of the user”", conversation=said) == []
    assert await wrong("https://d.test", conversation=said) == ["https://d.test"]


async def test_other_members_results_may_be_quoted_but_their_addresses_do_not_count():
    given = ["the mean of all the values is 4; https://c.test"]
    assert await wrong("“mean of all the values” at https://c.test", results=given) == ["https://c.test"]


async def test_without_sources_only_addresses_are_checked():
    check = await SourceCheck.of(Read())
    text = "“words that nobody ever said” [7] at https://c.test"
    assert [finding.citation.kind for finding in await check.findings(text)] == ["url"]


async def test_where_research_found_no_source_every_number_and_strange_quotation_is_made_up():
    check = await SourceCheck.of(
        Read(), conversation=["was it “opened by the king himself”?"], researched=True
    )
    text = "It was “opened by the king himself”: “the bridge was opened in 1932” [7]."
    assert [finding.citation.text for finding in await check.findings(text)] == [
        "the bridge was opened in 1932",
        "[7]",
    ]


async def test_an_address_without_a_scheme_is_cited_like_another():
    check = await SourceCheck.of(RECORD)
    assert await check.cited("www.a.test/page and [b](//b.test?q=1&x=2)") == {1, 2}


@pytest.mark.parametrize(
    "form",
    [
        "It says “{}” ([A]({url})).",
        "It says “{}” ({url}).",
        "“{}.” [A]({url})",
        "“{}.” ([A]({url}))",
        "“{}.” <{url}>",
        "“{}.” — <a href='{url}'>A</a>",
        "According to [A]({url}), “{}”.",
        "[“{}”]({url})",
        "> {}\n> — [A]({url})\n",
        "“{}” [A]({url}) [unverified]",
    ],
)
@pytest.mark.parametrize("url", ["https://a.test/page", "http://www.A.test/page/#top"])
async def test_a_quotation_must_be_in_the_source_whose_address_is_given_with_it(form, url):
    right, other = "the bridge was opened in 1932", "it is painted grey"
    assert await wrong(form.replace("{}", right).replace("{url}", url)) == []
    assert len(await wrong(form.replace("{}", other).replace("{url}", url))) == 1


async def test_a_quotation_may_be_in_any_source_that_is_cited_or_in_any_at_all_where_none_is():
    said = ["https://c.test/x"]
    assert await wrong("It says “it is painted grey” (https://c.test/x).", conversation=said) == []
    assert await wrong("It says “it is painted grey” ([A](https://a.test/page)) [2].") == []


FRENCH = (
    "Le maire de la ville a dit que les travaux du pont ne sont pas finis et que la route reste fermée. "
    "« Nous avons perdu un an à cause de la crue », a-t-il ajouté dans une lettre aux habitants."
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The mayor writes: “We have lost a year because of the flood” [1].", 0),
        ("The mayor: “Much water, little money, lost time” [1].", 0),
        ("Le maire écrit : « Nous avons gagné un an grâce à la nouvelle route » [1].", 1),
        ("The mayor and the people of the town speak of a “year lost” [1].", 0),
        ("Le maire et les habitants de la ville ont écrit « retard énorme » [1].", 1),
        ("The mayor and the people of the town speak of “travaux énormes” [1].", 1),
    ],
)
async def test_a_translated_quotation_is_not_looked_up(text, count):
    check = await SourceCheck.of(Read(("https://f.test/", "Pont", FRENCH)))
    assert len(await check.findings(text)) == count


@pytest.mark.parametrize(("verb", "count"), [("opened", 0), ("closed", 1)])
async def test_a_block_quote_may_name_its_speaker(verb, count):
    text = f"> “The bridge was {verb} in 1932,” says the engineer Ida Holm [1]."
    assert len(await wrong(text)) == count


async def test_every_finding_is_marked_once():
    check = await SourceCheck.of(RECORD)
    text = "[x](https://c.test), so [9] “this was never said there” and | [unverified]\n"
    findings = await check.findings(text)
    done = mark_findings(text, findings)
    assert done == (
        "[x](https://c.test) [unverified], so [9] [unverified] “this was never said there” [unverified] and"
        " | [unverified]\n"
    )
    assert mark_findings(done, await check.findings(done)) == done


def left_of(*blocks: str) -> list[str]:
    """Return the blocks that are no part of a list of sources."""
    own = ModelSourceList()
    return [*(left for block in blocks for left in own.feed(block)), *own.end()]


@pytest.mark.parametrize(
    "heading", ["## Sources", "### 5. **参考文献**", "## Quellen:", "**References:**", "Fuentes:"]
)
def test_a_list_that_a_model_wrote_is_known_in_many_forms(heading):
    assert left_of("Text.\n\n", f"{heading}\n\n", "- [1] https://a.test\n\n", "2. B\n") == ["Text.\n\n"]


def test_a_list_ends_with_the_next_heading_or_with_what_is_no_list():
    assert left_of("T\n", "**Sources:** [a](https://a.test)\n", "a\n") == ["T\n", "a\n"]
    assert left_of("T\n", "## Sources\n", "- a\n", "## Next\n", "- b\n") == ["T\n", "## Next\n", "- b\n"]
    assert left_of("T\n", "## Sources\n", "- a\n", "**Limits:** few\n", "- b\n") == [
        "T\n",
        "**Limits:** few\n",
        "- b\n",
    ]


@pytest.mark.parametrize(
    "blocks",
    [
        ["# Sources\n\n", "The bridge was opened in 1932 [1].\n"],
        ["## Sources\n\n", "- Breg\n- Brigach\n"],
        ["T\n\n", "# Sources\n\n", "- Breg\n- Brigach\n"],
        ["T\n\n", "## Sources\n\n", "The Danube has two sources.\n\n", "### Breg\n\n", "- it is long\n"],
        ["T\n\n", "## Sources\n\n", "### Breg\n\n", "It is long.\n"],
        ["T\n\n", "**Sources:**\n\n", "They are two.\n"],
        ["T\n\n", "## Sources of error\n", "- haste\n"],
        ["T\n\n", "Sources: we asked three people.\n"],
        ["T\n\n", "## Sources\n"],
    ],
)
def test_a_part_of_the_report_that_is_called_like_a_list_of_sources_is_no_list(blocks):
    assert left_of(*blocks) == blocks


async def test_the_list_is_built_with_titles_in_which_nothing_counts():
    record = Read(("https://a.test/<x> y", "Cite [me](https://evil.test/a) `now` | <b>", ""))
    text = format_source_list(await record.sources(), "Sources")
    assert text == "## Sources\n\n- [1] Cite \\[me\\]( \\`now\\` \\| b: <https://a.test/%20x%20%20y>\n"
    assert format_source_list([], "Sources") == ""


@pytest.mark.parametrize(
    ("text", "locale", "heading"),
    [
        ("The bridge is old and the king is dead.", "", "Sources"),
        ("Die Brücke ist alt und der König ist tot.", "", "Quellen"),
        ("大桥很旧。", "", "来源"),
        ("橋はとても古いです。", "", "出典"),
        ("Le pont est vieux et le roi est mort.", "", "Sources"),
        ("4", "de-DE", "Quellen"),
        ("4", "zh-CN", "来源"),
        ("Die Brücke ist alt und der König ist tot.", "en-GB", "Quellen"),
        ("The bridge is old and the king is dead.", "de-DE", "Sources"),
        ("Tea costs 3 euros.", "zh-CN", "Sources"),
    ],
)
def test_the_heading_follows_the_language_of_the_report(text, locale, heading):
    assert heading_for(text, locale) == heading


async def test_a_report_of_200_kilobytes_is_checked_in_linear_time():
    dice = random.Random(5)
    words = [f"{dice.choice('abcdefgh')}{number % 97}" for number in range(20_000)]
    check_seconds = []
    for size in (25_000, 200_000):
        page = " ".join(words)
        pieces, at = [], 0
        while sum(map(len, pieces)) < size:
            at = (at + 7) % 19_000
            pieces.append(f"Said “{' '.join(words[at : at + 6])}” [1] at https://a.test/{at}.\n\n")
        check = await SourceCheck.of(Read(("https://a.test/", "A", page)))
        begin = time.process_time()
        found = [finding for piece in pieces for finding in await check.findings(piece)]
        check_seconds.append(time.process_time() - begin)
        assert len(found) >= len(pieces)
    assert check_seconds[1] < 24 * check_seconds[0] + 1
