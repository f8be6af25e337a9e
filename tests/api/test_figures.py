"""Figures of a report: found among the pictures of its conversation, and shown in every form of it."""

import base64
import io
import zipfile

import pytest
from docx import Document
from PIL import Image

from tests.api.in_process import InProcessService
from tests.api.test_replay import lines_in
from tests.openai_server import SIMPLE, reply

pytestmark = pytest.mark.anyio
REPORT = """# Sales

Sales grew.

![Sales by [year]](figures/sales.png)

![Costs](figures/costs.png)

![Logo](https://evil.test/logo.png) and ![Up](../up.png) and ![Text](note.png)
"""


def draw(color: str = "red", size: tuple[int, int] = (640, 400)) -> bytes:
    """Return a PNG picture of one colour."""
    content = io.BytesIO()
    Image.new("RGB", size, color).save(content, "PNG")
    return content.getvalue()


async def reported(it: InProcessService, model, report: str = REPORT, **files: bytes) -> str:
    """Run a team whose code has left `figures/NAME.png`; return the address of the run."""
    model.reset({**SIMPLE, "reporter": [reply(report)]})
    name = await it.thread()
    thread = await it.service.store.threads.get(name, "")
    assert thread is not None
    workspace = it.service.workspaces.open(thread.thread_id)
    for stem, content in files.items():
        workspace.write(f"figures/{stem}.png", content)
    workspace.write("note.png", b"This is no picture.")
    run = await it.run(thread_id=name)
    await it.events_of(run["run_id"])
    return f"/api/runs/{run['run_id']}"


async def test_html_shows_a_figure_and_names_a_missing_one(it: InProcessService, model):
    picture = draw()
    path = await reported(it, model, sales=picture)
    response = await it.client.get(f"{path}/report?form=html")
    assert response.text.count("<img") == 1
    assert 'src="data:image/png;base64,' in response.text
    assert 'alt="Sales by [year]"' in response.text
    assert "Costs (figure missing: figures/costs.png)" in response.text
    assert "Text (figure missing: note.png)" in response.text
    assert "img-src data:;" in response.headers["content-security-policy"]


async def test_docx_holds_the_figure_with_its_caption(it: InProcessService, model):
    picture = draw()
    path = await reported(it, model, sales=picture)
    word = Document(io.BytesIO((await it.client.get(f"{path}/report?form=docx")).content))
    (shape,) = word.inline_shapes
    assert shape._inline.docPr.get("descr") == "Sales by [year]"
    assert word.part.related_parts[shape._inline.graphic.graphicData.pic.blipFill.blip.embed].blob == picture
    texts = {one.text: one.style.name for one in word.paragraphs if one.style is not None}
    assert texts["Sales by [year]"] == "Caption"
    assert "Costs (figure missing: figures/costs.png)" in texts


async def test_a_zip_holds_the_markdown_and_its_figures_by_relative_paths(it: InProcessService, model):
    picture = draw()
    path = await reported(it, model, sales=picture)
    response = await it.client.get(f"{path}/report?form=zip&download=true")
    assert response.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(response.content)) as file:
        assert file.namelist() == ["report.md", "figures/sales.png", "note.png"]
        assert file.read("figures/sales.png") == picture
        markdown = file.read("report.md").decode()
    assert "![Sales by [year]](figures/sales.png)" in markdown
    assert "\nCosts (figure missing: figures/costs.png)\n" in markdown
    assert (
        "[Logo](https://evil.test/logo.png) [unverified] and Up and Text (figure missing: note.png)"
        in markdown
    )
    assert markdown.count("![") == 1


async def test_the_page_and_the_replay_hold_the_figure(it: InProcessService, model):
    picture = draw()
    path = await reported(it, model, sales=picture)
    response = await it.client.get(f"{path}/figures/figures/sales.png")
    assert (response.status_code, response.content) == (200, picture)
    assert response.headers["content-type"] == "image/png"
    assert response.headers["content-security-policy"] == "sandbox"
    for missing in ("figures/costs.png", "note.png", "%2e%2e/up.png", "%2fetc/passwd"):
        assert (await it.client.get(f"{path}/figures/{missing}")).status_code == 404
    enclosed = lines_in((await it.client.get(f"{path}/replay")).text, "enclosures")
    contents = {one["path"]: one["content"] for one in enclosed}
    report = base64.b64decode(contents[f"{path}/report/body"].partition(",")[2]).decode()
    assert report == (await it.client.get(f"{path}/report/body")).text
    assert [one["path"] for one in enclosed if "/figures/" in one["path"]] == [
        f"{path}/figures/figures/sales.png"
    ]
    body = (await it.client.get(f"{path}/report/body")).text
    assert f'<img src="{path}/figures/figures/sales.png" alt="Sales by [year]">' in body
    assert body.count("<img") == 1
    assert "Costs (figure missing: figures/costs.png)" in body
    assert lines_in((await it.client.get(f"{path}/page")).text, "enclosures") == enclosed


async def test_a_report_shows_its_figure_as_it_was_when_the_run_ended(it: InProcessService, model):
    picture = draw()
    path = await reported(it, model, sales=picture)
    run = await it.service.engine.status(path.split("/")[3], None)
    it.service.workspaces.open(run.thread_id).write("figures/sales.png", draw("blue"))
    assert (await it.client.get(f"{path}/figures/figures/sales.png")).content == picture


@pytest.mark.slow
async def test_a_figure_of_another_conversation_is_missing(it: InProcessService, model):
    await reported(it, model, sales=draw())
    path = await reported(it, model)
    assert (await it.client.get(f"{path}/figures/figures/sales.png")).status_code == 404
    assert "<img" not in (await it.client.get(f"{path}/report?form=html")).text


@pytest.mark.slow
async def test_too_many_pixels_are_no_figure(it: InProcessService, model):
    path = await reported(it, model, sales=draw(size=(10_000, 6_000)))
    assert (await it.client.get(f"{path}/figures/figures/sales.png")).status_code == 404


async def test_a_figure_that_was_saved_and_shown_is_one_artifact_and_found_by_both_names(
    it: InProcessService, model
):
    picture = draw()
    report = "![Sales](figures/figure-1.png) ![Sales](figures/sales.png)"
    path = await reported(it, model, report, sales=picture, **{"figure-1": picture})
    view = await it.get(f"{path}/report?form=json")
    assert [one["name"] for one in view["artifacts"] if one["name"] != "note.png"] == ["sales.png"]
    assert (await it.client.get(f"{path}/report?form=html")).text.count("<img") == 2


async def test_a_zip_holds_the_files_that_the_report_links_to(it: InProcessService, model):
    links = "[the table](note.png), [again](/workspace/note.png), [none](none.csv) and [mine](report.md)"
    path = await reported(it, model, f"# Sales\n\nSee {links}.\n")
    content = (await it.client.get(f"{path}/report?form=zip&download=true")).content
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.namelist() == ["report.md", "note.png"]
        assert file.read("note.png") == b"This is no picture."
        assert "[the table](note.png), [again](note.png)" in file.read("report.md").decode()


async def test_a_zip_holds_what_the_run_made_and_no_unchanged_file_of_the_user(it: InProcessService, model):
    model.reset({**SIMPLE, "reporter": [reply("See [it](out/Report.md) and [the data](out/data.csv).")]})
    name = await it.thread()
    thread = await it.service.store.threads.get(name, "")
    assert thread is not None
    workspace = it.service.workspaces.open(thread.thread_id)
    uploads = it.service.workspaces.uploads(thread.thread_id)
    uploads.add([("mine.csv", io.BytesIO(b"m")), ("changed.csv", io.BytesIO(b"before"))])
    made = {
        "out/data.csv": b"1",
        "other/data.csv": b"2",
        "changed.csv": b"after",
        "Report.md": b"# Mine",
        "out/Report.md": b"# Ours",
        "a\\b.txt": b"3",
        "NOTE.txt": b"4",
        "note.txt": b"5",
    }
    for path, content in made.items():
        workspace.write(path, content)
    run = await it.run(thread_id=name)
    await it.events_of(run["run_id"])
    content = (await it.client.get(f"/api/runs/{run['run_id']}/report?form=zip")).content
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        names = file.namelist()
        assert names[0] == "report.md"
        assert sorted(file.read(one) for one in names[1:]) == sorted(made.values())
        assert not [one for one in names if "\\" in one]
        assert len({one.casefold() for one in names}) == len(names)
        assert file.read("out/data.csv") == b"1" and file.read("other/data.csv") == b"2"
        assert "[it](out/Report.md) and [the data](out/data.csv)" in file.read("report.md").decode()
