"""Reports as ZIP files of Markdown, figures and linked files."""

import asyncio
import io
import zipfile

from maniple.reading.pictures import identify_picture
from maniple.report_files import Report, ReportRenderer
from maniple.run_page.pictures import Figure
from tests.api.test_figures import draw


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
