"""The outline of a long report as models write it."""

import json

import pytest

from maniple.agents.report_outline import MOST_SECTIONS, may_be_outline, read_outline

pytestmark = pytest.mark.anyio


def outline(count: int = 3, **more) -> str:
    sections = [{"heading": f"## Part {number}", "answers": "why"} for number in range(1, count + 1)]
    return json.dumps({"title": "# The\nreport", "sections": sections, **more})


async def test_headings_are_one_line_without_marks():
    read = await read_outline(f"Here it is:\n```json\n{outline()}\n```")
    assert read.title == "The report"
    assert [one.heading for one in read.sections] == ["Part 1", "Part 2", "Part 3"]
    assert read.describe().splitlines() == [
        "# The report",
        "1. Part 1: why",
        "2. Part 2: why",
        "3. Part 3: why",
    ]


@pytest.mark.parametrize("value", [[2, 5], ["[2]", "5"], "2, 5"])
async def test_numbers_may_be_written_as_citations(value):
    sections = [{"heading": "A", "sources": value, "steps": value}] * 3
    (first, *_) = (await read_outline(outline(sections=sections))).sections
    assert (first.sources, first.steps) == ([2, 5], [2, 5])


@pytest.mark.parametrize(
    "answer", ["", "# A report", outline(2), outline(MOST_SECTIONS + 1), "{}", outline(title="")]
)
async def test_what_is_no_outline_is_refused(answer):
    with pytest.raises(ValueError):
        await read_outline(answer)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("", None),
        ("\n`", None),
        ("```json\n", None),
        ("```json\n{", True),
        ('{"t', True),
        ("# A", False),
        ("It", False),
    ],
)
def test_the_beginning_tells_whether_an_answer_is_json(begun, expected):
    assert may_be_outline(begun) is expected
