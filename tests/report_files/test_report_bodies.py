"""The texts of reports for the page."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from maniple.report_files import report_bodies
from maniple.report_files.report_bodies import ReportBodies
from maniple.run_files.pictures import FigureFinder
from tests.report_files.samples import SOURCES, TEA

pytestmark = pytest.mark.anyio


class _Finder:
    """Finds the figures `paths` of a run, and counts how often a report was rendered."""

    def __init__(self, run_id: str = "r1", paths: tuple[str, ...] = ()) -> None:
        self.run = SimpleNamespace(run_id=run_id)
        self.paths = paths
        self.sources = SOURCES
        self.store = SimpleNamespace(evidence=lambda _: SimpleNamespace(sources=self._sources))

    async def _sources(self) -> list[Any]:
        return [*self.sources]

    async def find_all(self, targets: list[str]) -> dict[str, None]:
        return {one: None for one in targets if one in self.paths}


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reports that were rendered, in order."""
    found: list[str] = []
    original = report_bodies.render_report

    def count(markdown: str, *rest: Any) -> str:
        found.append(markdown)
        return original(markdown, *rest)

    monkeypatch.setattr(report_bodies, "render_report", count)
    return found


async def body(bodies: ReportBodies, finder: _Finder, markdown: str) -> str:
    return await bodies.render(cast(FigureFinder, finder), markdown)


async def test_a_body_begins_with_the_title_of_the_report_and_links_its_sources(rendered: list[str]):
    html = await body(ReportBodies(), _Finder(), TEA)
    assert html.startswith("<h1>Tea in 2025</h1>")
    assert 'href="#source-1"' in html and 'id="source-1"' in html
    assert not (await body(ReportBodies(), _Finder(), "No title.")).startswith("<h1>")


async def test_a_report_is_rendered_again_only_if_it_or_what_it_shows_has_changed(rendered: list[str]):
    bodies, finder = ReportBodies(), _Finder()
    text = "See ![Bars](bars.png) [1]."
    first = await body(bodies, finder, text)
    assert (await body(bodies, finder, text), rendered) == (first, [text])
    finder.paths = ("bars.png",)
    assert 'src="/api/runs/r1/figures/bars.png"' in await body(bodies, finder, text)
    finder.sources = SOURCES[:1]
    await body(bodies, finder, text)
    await body(bodies, finder, f"{text} More.")
    await body(bodies, _Finder("r2"), text)
    assert len(rendered) == 5


async def test_the_oldest_bodies_are_forgotten_beyond_the_limit(
    rendered: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report_bodies, "_MAX_CHARACTERS", 3_000)
    bodies, finder = ReportBodies(), _Finder()
    for text in ("a " * 500, "b " * 500, "a " * 500, "c " * 500, "a " * 500):
        await body(bodies, finder, text)
    assert [one[0] for one in rendered] == ["a", "b", "a", "c", "a"]
    for text in ("a " * 500, "d", "a " * 500):
        await body(bodies, finder, text)
    assert [one[0] for one in rendered[5:]] == ["d"]
