"""Formulas, code, footnotes, tasks, links, images and HTML stay as the model wrote them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.agents.report_draft import ReportDraft, UncitedDraft
from maniple.claims.report_check import ReportCheck
from maniple.evidence.check import MARK
from maniple.evidence.citations import find_citations
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

RECORD = Read(("https://a.test/page", "The bridge", "The bridge was opened in 1932 by the king himself."))
ALTERED = "“closed in 1933 by the mayor himself”"
NO_CITATIONS = [
    r"$\sqrt[9]{5}$",
    r"$x_{[9]} < y[8] > z$",
    r"$$\sqrt[9]{\text{“closed in 1933 by the mayor”}}$$",
    r"\(\sqrt[9]{5}\)",
    r"\[\sqrt[9]{5} = a[8]\]",
    r"$\$5 \cdot n_{[9]} = x\$ + y[8]$",
    r"$$n_{[9]} = \$5 + y[8]$$",
    r"\begin{align*}a_{[9]} &= \sqrt[8]{5} \\ b &= [7]\end{align*}",
    r"\begin{pmatrix} a[9] & b \end{pmatrix}",
    f"$$x[9]{' + 1' * 1500}$$",
    "`a[9]`",
    "``a[9] ` “closed in 1933 by the mayor” b[8]``",
    "<code>a[9] “closed in 1933 by the mayor”</code>",
    "[^1]",
    "[^9]",
    "[^note]",
]
"""Inline elements in which nothing is a citation."""
WITH_CITATIONS = [
    f"[{ALTERED} and [9] more](https://a.test/page)",
    f"[see {ALTERED}][name]",
    "[9](https://b.test/)",
    '[t](https://b.test/ "title [9]")',
    "<https://b.test/x>",
    f"![{ALTERED} [9]](https://b.test/x.png)",
    '<span title="a [9] b">',
    '<a href="https://b.test/">',
    "<!-- [9] -->",
    "`https://b.test/[9]`",
]
"""Inline elements that have or are citations without a source; a mark may only follow them."""
BLOCKS = [
    "```python\nx = a[9]\n\ns = “closed in 1933 by the mayor himself”\n```\n",
    "~~~~\n```\nx = a[9]\n~~~~\n",
    "    x = a[9]\n    s = “closed in 1933 by the mayor himself”\n",
    "\tx = a[9]\n\n\ty = b[8]\n",
    "1. one\n\n       x = a[9]\n",
    "> ```\n> x = a[9]\n> ```\n",
    "$$\n\\sqrt[9]{5}\n$$\n",
    "\\[\n\\sqrt[9]{5}\n\\]\n",
    "\\begin{equation}\nx_{[9]} = y[8]\n\\end{equation}\n",
    "- [x] done\n- [ ] not yet\n- [X] done\n",
]
AROUND = [
    "{}\n",
    "so: {}, as we see.\n",
    "- one\n- so: {}\n",
    "> **Note:** so: {}\n",
    "# {} it is\n",
    "a\nso {}\nb\n",
]
CELL = "| a | b |\n|---|---|\n| so {} it is | 5 |\n"

IN_CELLS = [one for one in NO_CITATIONS + WITH_CITATIONS if "\n" not in one]
INLINE = st.builds(str.replace, st.sampled_from([*AROUND, CELL]), st.just("{}"), st.sampled_from(IN_CELLS))
WRONG = st.sampled_from(
    ["So it is [9].\n", f"He says {ALTERED}.\n", "See https://b.test/ here.\n", "Right.\n"]
)
# Behind a list, indented lines would be a paragraph of its last item.
BLOCK = st.sampled_from([f"Text.\n\n{one}" if one[0].isspace() else one for one in BLOCKS])
REPORT = st.lists(st.one_of(INLINE, BLOCK, WRONG), min_size=1, max_size=6)


async def shown(report: str, size: int, check: type[ReportDraft] | type[UncitedDraft] = ReportDraft) -> str:
    """Return what the check shows of a report that comes in pieces, without the sources at its end."""
    draft = check(await ReportCheck.of(RECORD))
    pieces = [await draft.feed(report[at : at + size]) for at in range(0, len(report), size)]
    return "".join([*pieces, await draft.end()]).partition("\n## Sources\n")[0].rstrip("\n")


@pytest.mark.parametrize("inline", NO_CITATIONS)
@pytest.mark.parametrize("around", [*AROUND, CELL])
async def test_nothing_in_a_formula_code_or_footnote_is_a_citation(inline: str, around: str):
    report = around.replace("{}", inline)
    assert find_citations(report) == []
    assert await shown(report, 3) == report.rstrip("\n")


@pytest.mark.parametrize("block", BLOCKS)
async def test_nothing_in_a_block_of_code_or_a_task_is_a_citation(block: str):
    report = f"Text.\n\n{block}\nText.\n"
    assert await shown(report, 3) == report.rstrip("\n")


@pytest.mark.parametrize("inline", WITH_CITATIONS)
@pytest.mark.parametrize("around", [*AROUND, CELL])
async def test_a_mark_never_stands_inside_of_a_link_an_image_or_a_tag(inline: str, around: str):
    report = around.replace("{}", inline)
    done = await shown(report, 3)
    assert MARK in done
    assert inline in done
    assert done.replace(f" {MARK}", "") == report.rstrip("\n")


@given(REPORT, st.integers(1, 200), st.sampled_from([ReportDraft, UncitedDraft]))
@settings(max_examples=200, deadline=None)
async def test_no_character_inside_of_an_opaque_part_of_a_random_report_is_changed(parts, size, check):
    report = "\n".join(parts)
    done = await shown(report, size, check)
    assert done.replace(f" {MARK}", "") == report.rstrip("\n")
    for one in (*NO_CITATIONS, *WITH_CITATIONS, *BLOCKS):
        assert done.count(one.rstrip("\n")) >= report.count(one.rstrip("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 [9] or $6 today.\n",
        r"It is \[9\]." + "\n",
        r"\begin{quote}It is [9].\end{quote}" + "\n",
        r"It costs \$5 [9] or \$6 today." + "\n",
        "An ` unpaired tick [9].\n",
        r"\`a [9]\`" + "\n",
        "```markdown\nIt is so [9].\n```\n",
        "- a\n\n    It is so [9].\n",
        "- [x] so it is [9]\n",
        "[^1]: as in [9]\n",
    ],
)
async def test_what_only_resembles_code_or_a_formula_is_checked(text: str):
    assert [one.numbers for one in find_citations(text)] == [(9,)]
    assert MARK in await shown(text, 400)


async def test_a_mark_about_an_address_in_indented_code_follows_the_code():
    code = "    curl https://b.test/x\n    ls"
    assert await shown(f"{code}\n\nText.\n", 400) == f"{code}\n\n{MARK}\n\nText."


async def test_definitions_of_footnotes_stay_also_under_the_heading_of_a_source_list():
    notes = "[^2]: My own words.\n    More of them.\n[^1]: https://a.test/page\n"
    draft = ReportDraft(await ReportCheck.of(RECORD))
    done = await draft.feed(f"It is so [1], I say[^2].\n\n## Sources\n\n{notes}") + await draft.end()
    assert notes in done
    assert done.count("## Sources") == 1
