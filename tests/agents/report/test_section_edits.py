"""The blocks by which a report is edited: how they are read, and what they leave as it is."""

import pytest

from maniple.agents.section_edits import (
    apply_edits,
    find_sections,
    is_editable,
    list_headings,
    parse_edits,
    recognize_edits,
)

REPORT = """Kept from before.

# Report

Intro **text** [1]. [unverified]

## Costs

They are 5 [2].

### Detail

- one
- two

## Risks

```md
## Costs
```

## Costs

Again.

## Sources

- [1] T: <https://a.test/>
"""


def edited(*blocks: str, report: str = REPORT):
    return apply_edits(report, parse_edits("\n".join(blocks)))


def text_of(result) -> str:
    assert not result.problems
    return "".join(part.text for part in result.parts)


def block(heading: str, text: str = "", action: str = "replace", more: str = "") -> str:
    return f'<section heading="{heading}" action="{action}"{more}>\n{text}\n</section>'


def test_the_sections_of_a_report_are_its_headings_outside_of_code_without_the_sources():
    sections = find_sections(REPORT)
    assert [one.heading for one in sections] == [
        "",
        "# Report",
        "## Costs",
        "### Detail",
        "## Risks",
        "## Costs",
    ]
    assert REPORT[sections[2].start : sections[2].end].endswith("- two\n\n")
    assert REPORT[sections[1].start : sections[1].end].endswith("[unverified]\n\n"), "only the title's own"
    assert 'Costs`, number="2"' in list_headings(sections)


def test_a_replaced_section_leaves_all_else_byte_for_byte():
    text = text_of(edited(block("## Risks", "## Risks\n\nNone.")))
    before, after = REPORT.split("## Risks\n\n```md\n## Costs\n```\n")
    assert text == f"{before}## Risks\n\nNone.\n{after}"
    assert all(part.text in REPORT for part in edited(block("## Risks", "x")).parts if part.is_unchanged)


@pytest.mark.parametrize("heading", ["Risks", "**risks**:", "# Risks", "2. Risks", "## Risks [1]"])
def test_a_heading_is_matched_by_its_words(heading):
    assert "## Risks\n\nNone." in text_of(edited(block(heading, "None.")))


def test_sections_with_the_same_heading_are_told_apart_by_number():
    text = text_of(edited(block("## Costs", "New.", more=' number="2"')))
    assert text == REPORT.replace("Again.", "New.")
    assert "They are 5" not in text_of(edited(block("## Costs", "New.", more=' number="1"')))
    assert "2 sections" in edited(block("## Costs", "New.")).problems[0]
    assert 'number="3"' in edited(block("## Costs", "New.", more=' number="3"')).problems[0]


def test_a_section_is_deleted_with_its_subsections():
    text = text_of(edited('<section heading="## Costs" number="1" action="delete"></section>'))
    assert text == REPORT.replace(REPORT[REPORT.index("## Costs") : REPORT.index("## Risks")], "")
    first = text_of(edited('<section heading="" action="delete"/>'))
    assert first == REPORT.removeprefix("Kept from before.\n\n")


def test_new_sections_stand_behind_the_one_that_is_named_in_the_order_given():
    text = text_of(
        edited(
            block("## Risks", "## Second\n\nB", "insert_after"),
            block("### Detail", "First", "insert_after"),
            block("## Risks", "## Third\n\nC", "insert-after"),
        )
    )
    assert "- two\n\nFirst\n\n## Risks" in text
    assert "```\n\n## Second\n\nB\n\n## Third\n\nC\n\n##" in text
    assert text.replace("First\n\n", "").replace("## Second\n\nB\n\n## Third\n\nC\n\n", "") == REPORT


def test_a_text_at_the_end_has_a_blank_line_before_it():
    assert text_of(edited(block("## B", "C", "insert_after"), report="# A\n\n## B\n\nb")).endswith("b\n\nC\n")


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([block("## Cots", "x")], "no section"),
        ([block("## Risks", "x", "sort")], "no action"),
        ([block("## Risks", "")], "has no text"),
        ([block("## Risks", "```\nx")], "no `</section>`"),
        ([block("## Costs", "Again.", more=' number="2"')], "changes nothing"),
        ([block("## Costs", "x", more=' number="1"'), block("### Detail", "y")], "another block"),
        (['<section heading="## Risks" action="replace">\nx'], "no `</section>`"),
        (["No blocks."], "changes nothing"),
        ([block("## Sources", "- [1] x")], "changes nothing"),
    ],
)
def test_an_edit_that_does_not_fit_is_named_with_the_reason(blocks, problem):
    assert problem in edited(*blocks).problems[0]


def test_edits_that_fit_are_applied_beside_those_that_do_not():
    result = edited(block("## Cots", "x"), block("## Risks", "None."))
    assert result.is_changed
    assert "None." in "".join(part.text for part in result.parts)
    assert len(result.problems) == 1


def test_the_end_of_a_block_is_not_looked_for_in_code():
    text = "```html\n</section>\n```\n\nEnd."
    assert text in text_of(edited(block("## Risks", text)))


def test_values_may_have_quotation_marks_and_entities():
    report = '# A\n\n## The "best" & last\n\nx\n'
    for heading in ('## The "best" & last', "## The &quot;best&quot; &amp; last"):
        assert "\n\ny\n" in text_of(edited(block(heading, "y"), report=report))


@pytest.mark.slow
def test_a_file_of_many_open_blocks_is_read_in_linear_time():
    assert len(parse_edits('<section heading="a' * 20_000).edits) == 0
    assert len(parse_edits('<section heading="a"></section>' * 5_000).edits) == 5_000


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("\n<section heading=", True),
        ("I add a chart:\n\n<section action=", True),
        ("```xml\n<section heading=", True),
        ("<sec", None),
        ("I add a chart:\n\n", None),
        ("I add a chart:\n\n<sect", None),
        ("# Report", False),
        ("One.\n\nTwo", False),
        ("w" * 500, False),
        ("<section>x", None),
    ],
)
def test_the_beginning_of_an_answer_tells_whether_it_is_edits(answer, expected):
    assert recognize_edits(answer) is expected
    assert recognize_edits(answer, is_complete=True) is bool(expected)


def test_only_long_reports_with_sections_are_edited():
    assert not is_editable(REPORT, find_sections(REPORT))
    long, flat = REPORT + "w " * 2_000, "# A\n\n" + "w " * 2_000
    assert is_editable(long, find_sections(long))
    assert not is_editable(flat, find_sections(flat))
