"""The list at the end of a report's file: which claims are not supported."""

import io
import re
import zipfile

import pytest

from maniple.report_files import ReportRenderer
from maniple.report_files.document import Report
from maniple.report_files.unsupported import MAX_ENTRIES, append_unsupported
from tests.cli.test_claim_lines import checked_claims

pytestmark = pytest.mark.anyio
REPORT = "# The bridge\n\nIt is old [1].\n\nIt is 730 m [1]. [unverified]\n\n*1 of 2 claims supported*\n"


def test_what_is_not_supported_is_listed_with_its_reason_behind_the_report():
    listed = append_unsupported(REPORT, checked_claims())
    assert listed.startswith(REPORT.rstrip())
    _, *entries = listed.removeprefix(REPORT.rstrip()).split("\n- ")
    assert [one.partition(" (")[0].strip() for one in entries] == [
        "It is 730 m. [1]",
        "https://made.test: was not opened",
    ]
    assert append_unsupported(REPORT, None) == REPORT


def test_markup_of_pages_is_escaped_and_the_list_is_short():
    checked = checked_claims()
    wild = checked.claims[1].model_copy(update={"text": "[a](http://evil.test) <b> `x`"})
    checked = checked.model_copy(update={"claims": [wild] * (MAX_ENTRIES + 7), "marked_citations": []})
    listed = append_unsupported("# 桥\n\n大桥很老。", checked)
    assert r"\[a\](http://evil.test) \<b\> \`x\`" in listed
    assert listed.count("\n- ") == MAX_ENTRIES + 1
    assert listed.rstrip().splitlines()[-1] == "- 另有 7 条"
    assert "## 没有依据的论断" in listed


@pytest.mark.parametrize("form", ["markdown", "html", "docx"])
async def test_marks_and_score_stay_in_each_format(form):
    report = Report("The bridge", append_unsupported(REPORT, checked_claims()))
    content = await ReportRenderer(None).render(report, form)
    if form == "docx":
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            content = file.read("word/document.xml")
    text = re.sub(r"<[^>]+>", "", content.decode()).replace("\N{NO-BREAK SPACE}", " ")
    assert "1 of 2 claims" in text
    assert "[unverified]" in text
    assert "730 m is not there" in text
    assert "not supported" in text
