"""Forms in which an altered quotation or an invented address got past, and right ones that were caught."""

import pytest

from maniple.evidence.check import SourceCheck
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

RECORD = Read(
    (
        "https://www.a.test/page/",
        "Page A",
        "The bridge was opened in 1932 by the king himself. It wasn't painted again, the dogs' owners said, "
        "and the ﬁnal cost rose to 1,000 pounds – twice the well\u2011known estimate. Nobody complained.",
    ),
    (
        "https://bücher.example/käse?q=1&x=2",
        "Page B",
        "大桥于1932年由国王亲自启用通车，此后再也没有人粉刷过。",
    ),
    ("folder:notes%20of%20may.md", "Notes", "Le pont fut ouvert en 1932 par le roi lui-même."),
)
TRUE, ALTERED = "The bridge was opened in 1932 by the king", "The bridge was closed in 1932 by the mayor"
MARKS = [
    "“{}”",
    "„{}“",
    "„{}”",
    "”{}”",
    "«{}»",
    "«\u202f{}\u202f»",
    "»{}«",
    "»{}»",
    "‘{}’",
    "‚{}‘",
    "’{}’",
    "‹{}›",
    "›{}‹",
]
MARKS += [
    "「{}」",
    "『{}』",
    "〝{}〟",
    "｢{}｣",
    "❝{}❞",
    "``{}''",
    "''{}''",
    '"{}"',
    "＂{}＂",
    "'{}'",
    "<q>{}</q>",
    "<blockquote>{}</blockquote>",
    '“{}"',
]
MARKS += [
    "&ldquo;{}&rdquo;",
    "&quot;{}&quot;",
    '\\"{}\\"',
    "“`{}`”",
    '“<b title="x">{}</b>”',
    "“{}",
    "*“{}”*",
    "“see «it»: {}”",
]


async def wrong(text: str) -> list[str]:
    check = await SourceCheck.of(RECORD)
    return [finding.citation.text for finding in await check.findings(text)]


@pytest.mark.parametrize("marks", MARKS)
async def test_an_altered_quotation_is_found_in_all_marks_and_a_right_one_is_not(marks):
    [found] = await wrong(f"He said that {marks.format(ALTERED)}\n")
    assert ALTERED in found
    if "«it»" not in marks:
        assert await wrong(f"He said that {marks.format(TRUE)}\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "> {}\n",
        ">{}\n>\n> — The *Times*, 1932\n",
        "> {}\n— The king\n",
        "> “{}” — [The king](https://a.test/page) [1]\n",
        "> - {}\n",
        "> — {}\n",
        "> **The king:** {}\n",
        "> [!quote]\n> {}\n",
        "- > {}\n- > The bridge was opened in 1932\n",
        "1. He said:\n   > {}\n",
        "> He said it\n{}\n",
        "> 1. {}\n> 2. {}\n",
        "<blockquote>\n\n<p>{}</p>\n\n</blockquote>\n",
        "<blockquote cite='x'>{}",
        "| a | b |\n|---|---|\n| “{}” | c |\n",
        "### “{}”\n",
        "“{}”\n===\n",
        "[^1]: As in “{}”.\n",
        "- a\n- “{}”\n",
        "\\` “{}” \\`\n",
        "- `a\n- “{}” `\n",
        "| ` | “{}” | ` |\n|---|---|---|\n",
        '<a href="`">“{}”`</a>\n',
        "    ```\n“{}”\n",
        "<!--\n```\n-->\n“{}”\n",
        "a\n2. ```\n   “{}”\n",
        '<a href="https://a.test/page">“{}”</a>\n',
        "‘The dogs’ {}’",
    ],
)
async def test_an_altered_quotation_is_found_wherever_it_occurs(text):
    found = await wrong(text.replace("{}", ALTERED))
    assert found
    assert all(ALTERED in one for one in found)


@pytest.mark.parametrize(
    "quoted",
    [
        "the bridge […] by the king himself",
        "the bridge [of the north] opened in 1932",
        "[The river’s oldest bridge] was opened in 1932 [sic] by the king himself",
        "The bridge was opened in 1932 by the king himself [emphasis added]",
        "[it] was opened in 1932 [sic] by the king",
        "was opened (sic) in 1932",
        "the bridge was open\u00aded in\u00a01932 by the king himself.",
        "The final cost rose to 1,000 pounds - twice the well-known estimate",
        "the bridge&nbsp;was opened&#32;in 1932",
        "**the bridge** was <em>opened</em> in 1932",
        "the dogs’ owners said, and the final cost",
    ],
)
@pytest.mark.parametrize("marks", ["“{}”", "‘{}’", "> {}"])
async def test_a_right_quotation_may_differ_in_how_it_is_set(quoted, marks):
    assert await wrong(marks.format(quoted)) == []


@pytest.mark.parametrize(
    "byline",
    [
        "\n> --- *A. King*, [The Times](https://a.test/page/), 1932",
        "\n> **— The king** [1]",
        "\n>\n> ——《日报》[1]",
        "\n> Source: [the page](https://a.test/page)",
        " — The king",
        " [Source 1]",
        " (King, 1932)",
        " [1]\n> ([source](https://a.test/page))",
        "\nSource: [1]",
    ],
)
async def test_who_is_named_behind_a_block_quote_is_not_quoted(byline):
    assert await wrong(f"> “{TRUE}”{byline}\n") == []


@pytest.mark.parametrize(
    "quoted",
    [
        "by the king himself … the bridge was opened",
        "the bridge was opened [not] in 1832",
        "the … was … painted … by … king",
        "the bridge … said that it … estimate",
    ],
)
async def test_gaps_and_insertions_hide_no_other_words(quoted):
    assert await wrong(f"“{quoted}”") == [quoted]


@pytest.mark.parametrize(
    "quoted",
    [
        "the bridge was [never] opened in 1932",
        "the bridge [did not] open in 1932 by the king",
        "the bridge [was never] opened in 1932",
        "the bridge was opened [again] in 1932 by the king",
        "[Nobody knows whether] the bridge was opened in 1932",
        "[Never] was opened in 1932 by the king",
        "was opened in 1932 by the king [in 1944]",
        "the bridge was opened in [May 1944] by the king",
        "the final cost rose to [2,000] pounds",
        "[5,000] people said the final cost rose to 1,000 pounds",
        "大桥于1932年[没有]由国王亲自启用通车",
    ],
)
async def test_words_in_brackets_deny_nothing_and_bring_no_figure_or_word_of_their_own(quoted):
    assert await wrong(f"“{quoted}”") == [quoted]


async def test_a_negation_in_brackets_may_replace_one_of_the_source():
    assert await wrong("“It [was not] painted again, the dogs' owners said”") == []


async def test_three_words_are_a_quotation_where_a_number_follows_them():
    assert await wrong("It was “closed in spring” [1], a “race to nowhere” of sorts [1].") == [
        "closed in spring"
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("It “closed early” [1].", "closed early"),
        ("It “closed early” ([A](https://a.test/page)).", "closed early"),
        ("It didn’t say that “trains paid” [1].", "trains paid"),
        ("“closed for years” was its verdict [1].", "closed for years"),
        ("Of course, “built in 1931” says [1].", "built in 1931"),
        ("A bridge of “1931” [1].", "1931"),
        ("市长说“我们一直想要桥”[2]。", "我们一直想要桥"),
        ("据[2]，大桥“于1933年”通车。", "于1933年"),
    ],
)
async def test_few_words_or_a_figure_are_a_quotation_where_their_sentence_cites(text, what):
    assert await wrong(text) == [what]


@pytest.mark.parametrize(
    "text",
    [
        "It “rose to” a cost [1].",
        "It “nobody complained” [1], and “opened in 1932” as well.",
        "The “race to nowhere” of now, the so-called “beautiful game” [1].",
        "Its “echo chamber” [1], dubbed “winner takes all” by some [1]; “junk DNA” [1].",
        "It was “closed early”. It opened [1].",
        "“built in 1931”. It opened [1].",
        "市长说“一直想要桥”。所谓“我们一直想要桥”[2]。",
    ],
)
async def test_terms_names_and_short_quotations_of_the_source_are_valid(text):
    assert await wrong(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "It's the dogs' and the cats' matter, isn't it, in '90s style of rock 'n' roll they'd say.",
        'A 5" pipe and a 6\' board of 7" are 12" long by 3\' wide.',
        "The word “bridge”, the ‘so-called’ term, «le pont», „Brücke“ and 「大桥」 are names.",
        "Type `print(\"one two three four five\")` or `a[9]`, and `'one two three four'`.",
        "> **Key takeaway:** it will have to be painted soon.",
        "> [!NOTE]\n> It will have to be painted soon.",
        "Is x < 5 and y > 3 or not, & what then; a <b>bold</b> word.",
    ],
)
async def test_what_is_no_quotation_is_not_looked_up(text):
    assert await wrong(text) == []


@pytest.mark.parametrize(
    "address",
    [
        "https://www.a.test/page/",
        "http://a.test/page",
        "a.test/page",
        "www.A.test/page",
        "A.TEST/page",
        "https://a.test:443/page#top",
        "https://a.test/p%61ge?utm_source=x&fbclid=y",
        "https://bücher.example/käse?q=1&x=2",
        "https://xn--bcher-kva.example/k%C3%A4se?q=1&x=2",
        "https://bücher.example/käse?q=1&amp;x=2",
        "bücher.example/käse?q=1&x=2",
        "folder:notes%20of%20may.md",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "[{}](https://a.test/page), [{}][r] and ({})",
        "see {}.",
        "so {}—it is {}’s, {}'s and （{}）، {}，",
        "({})",
        "<{}>",
        "[t]({})",
        "[t](<{}> 'T')",
        "[t]: {}\n",
        '<a href="{}">t</a>',
        "`{}`",
        "**{}**",
        "见{}。",
    ],
)
async def test_every_spelling_of_what_was_read_holds_in_every_form(form, address):
    assert await wrong(form.replace("{}", address)) == []


@pytest.mark.parametrize(
    "text",
    [
        "see evil.test/x.",
        "参见evil.test/x。",
        "see EVIL.test/x!",
        "see [evil.test/x].",
        "see **evil.test/x**",
        "(https://evil.test/x)",
        "[t](evil.test/x)",
        "[t](evil.com)",
        "[t](folder:nope.md)",
        "folder:nope.md",
        "<folder:nope.md>",
        "<doi:10.1000/182>",
        "[t](doi:10.1000/182)",
        "[t](<https://evil.test/a page>)",
        "[t](\nhttps://evil.test/x)",
        "[t]:\n  //evil.test/x\n",
        "[^1]: https://a.test/page and https://evil.test/x",
        "[https://a.test/page][https://evil.test/x]",
        "https\\://evil.test/x",
        "evil&period;test/x",
        "https&colon;//evil.test/x",
        "https://evil\u00ad.test/x",
        "https:/evil.test/x",
        "https:\\\\evil.test\\x",
        '<a href="https://a.test/page">https://evil.test/x</a>',
        "<a href=//evil.test/x>t</a>",
        "<img src='evil.test/x.png'>",
        "![t](https://evil.test/x.png)",
        "`https://evil.test/x`",
        "# evil.test/x",
        "| a | evil.test/x |\n|---|---|\n",
        "```\na\n```\nevil.test/x",
        "    evil.test/x",
        "> - evil.test/x",
        "https://a.test/Page",
        "https://a.test.evil.test/page",
        "https://a.test@evil.test/page",
        "https://a.test:8080/page",
        "https://evil.test/https://a.test/page",
    ],
)
async def test_an_invented_address_is_found_in_every_form_once(text):
    assert len(await wrong(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "e.g./i.e., and/or, 1.5/2, v2.0/beta, Node.js/Express, ASP.NET/MVC, z.B./u.a., 24/7, a.m./p.m.",
        "data.csv, src/main.py/x, README.md/LICENSE, config.yaml/json, ./lib.io/x, ~/notes.io/x, a.html/b",
        "Amazon.com, Booking.com and Node.js are names; me@a.test/x is mail; http:// and https://… are none",
        "[a](#part), [b](data.csv), [c](mailto:me@a.test), [d](./x/y.md), [e](main.py) and [ ] or [x]",
        "Vue.js/React.js, ca. 3.5/4.0 km/h, 3./4. Mai, Art.5/6, S.p.A./S.r.l., Ph.D./M.D., U.S./EU",
        "时间：10:30/11:00，比例1.5/2。和/或、e.g.等",
        "```sh\ncurl https://evil.test/x\n```",
    ],
)
async def test_plain_words_are_no_addresses(text):
    assert await wrong(text) == []
