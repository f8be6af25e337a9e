"""Reports as ZIP files of Markdown, figures and linked files."""

import asyncio
import io
import zipfile

from maniple.report_files import Report, ReportRenderer


def test_a_zip_holds_linked_files_whose_path_begins_like_the_folder_of_the_figures():
    files = {"figures-2024.csv": b"a,b", "figures/data.csv": b"c,d"}
    links = " ".join(f"[data](/workspace/{path})" for path in files)
    content = asyncio.run(ReportRenderer(None).render(Report("Tea", links, files=files), "zip"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert {path: file.read(path) for path in file.namelist() if path != "report.md"} == files
        for path in files:
            assert f"]({path})" in file.read("report.md").decode()
