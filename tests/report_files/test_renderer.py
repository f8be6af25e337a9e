"""Reports as ZIP files of Markdown, figures and linked files."""

import asyncio
import io
import re
import zipfile
from dataclasses import replace
from urllib.parse import quote, unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.evidence.record import Source
from maniple.reading.pictures import identify_picture
from maniple.report_files import Report, ReportRenderer
from maniple.report_files.bundle import write_markdown
from maniple.run_files.pictures import Figure
from tests.api.test_figures import draw
from tests.report_files.samples import READ_AT, SOURCES


def test_a_zip_holds_linked_files_whose_path_begins_like_the_folder_of_the_figures():
    files = {"figures-2024.csv": b"a,b", "figures/data.csv": b"c,d"}
    links = " ".join(f"[data](/workspace/{path})" for path in files)
    content = asyncio.run(ReportRenderer(None).render(Report("Tea", links, files=files), "zip"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert {path: file.read(path) for path in file.namelist() if path != "report.md"} == files
        for path in files:
            assert f"]({path})" in file.read("report.md").decode()


def test_a_figure_does_not_take_the_name_of_a_linked_file():
    picture = draw()
    shown = Figure("out/plot.png", picture, identify_picture(picture))
    files = {"figures/plot.png": b"another one"}
    markdown = "![Shown](out/plot.png) and [linked](figures/plot.png)"
    report = Report("Tea", markdown, figures={"out/plot.png": shown}, files=files)
    content = asyncio.run(ReportRenderer(None).render(report, "zip"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.read("figures/plot.png") == b"another one"
        assert file.read("figures/1-plot.png") == picture
        assert "![Shown](figures/1-plot.png)" in file.read("report.md").decode()


def test_a_linked_file_of_the_report_s_own_name_gets_another_one():
    files = {"report.md": b"# Mine", "report-1.md": b"# First", "old/report.md": b"# Old"}
    links = "[a](/workspace/report.md) [b](report.md#top) [c](old/report.md) [d](report-1.md)"
    content = asyncio.run(ReportRenderer(None).render(Report("Tea", links, files=files), "zip"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert sorted(file.namelist()) == ["old/report.md", "report-1.md", "report-2.md", "report.md"]
        assert file.read("report-2.md") == b"# Mine"
        report = file.read("report.md").decode()
    assert "[a](report-2.md) [b](report-2.md#top) [c](old/report.md) [d](report-1.md)" in report


NAMES = [
    "report.md",
    "Report.md",
    "REPORT.MD",
    "a\\b.csv",
    "A/x",
    "a/y",
    "a",
    "..\\c",
    "con.txt",
    "x. ",
    "é.txt",
    "e\u0301.txt",
    "b|c?.md",
]


@given(st.lists(st.sampled_from(NAMES), unique=True, max_size=len(NAMES)), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_file_of_a_zip_has_a_name_that_is_valid_everywhere_and_links_follow(paths, linked):
    files = {path: path.encode() for path in paths}
    text = "Text. " + " ".join(f"[x]({quote(path)})" for path in paths) + "\n\n```\n[x](Report.md)\n```\n"
    report = Report("Tea", text, **{"files" if linked else "made": files})
    with zipfile.ZipFile(io.BytesIO(asyncio.run(ReportRenderer(None).render(report, "zip")))) as file:
        names = file.namelist()
        assert names[0] == "report.md"
        assert sorted(file.read(one) for one in names[1:]) == sorted(files.values())
        keys = [one.casefold() for one in names]
        assert len({*keys}) == len(keys)
        folders = {key.rpartition("/")[0] for key in keys} - {""}
        assert not folders & {*keys}
        assert not [one for one in names if re.search(r'[\\:*?"<>|]|(^|/)\.|[. ]$|^con\b', one)]
        shown = file.read("report.md").decode()
        targets = re.findall(r"\]\(([^)]*)\)", shown.partition("```")[0])
        assert [file.read(unquote(one)) for one in targets] == list(files.values())
        assert "```\n[x](Report.md)\n```" in shown


def test_a_definition_of_a_link_follows_too_and_what_was_left_out_is_named():
    report = Report(
        "Tea", "See [it].\n\n[it]: /workspace/Report.md\n", files={"Report.md": b"x"}, left_out=["big.bin"]
    )
    with zipfile.ZipFile(io.BytesIO(asyncio.run(ReportRenderer(None).render(report, "zip")))) as file:
        assert "[it]: Report-1.md" in file.read("report.md").decode()
        assert file.read("not-included.txt") == b"big.bin\n"


def test_markdown_has_the_list_of_sources_that_every_other_form_has():
    text = "# Tea\n\nIt costs 3 euros [1], in a file [4]."
    of_folder = Source(4, "folder:my%20notes/tea.md", "Notes", "page", READ_AT, "0" * 64)
    report = Report("Tea", text, [*SOURCES, of_folder], READ_AT)
    made = write_markdown(report, {})
    assert made.startswith(f"{text}\n\n## Sources\n\n- [1] The history of tea: <https://tea.example/")
    assert made.endswith("\n- [4] Notes: <folder:my%20notes/tea.md>\n")
    assert write_markdown(replace(report, markdown=made), {}) == made
    for other in ("# Tea\n\nNo citation.", "# Tea [1]\n\n```\nan open block"):
        assert write_markdown(replace(report, markdown=other), {}) == other
