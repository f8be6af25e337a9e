"""The page of a run: one HTML file that holds all it shows, runs nothing and loads nothing."""

import asyncio
from collections.abc import Collection, Mapping
from functools import cache
from urllib.parse import urlsplit

from jinja2 import Template
from markupsafe import Markup

from maniple.run_page.facts import as_data, by_tool
from maniple.run_page.ledger import enter_times
from maniple.run_page.markup import as_html, image_targets
from maniple.run_page.packaged import digest_of, style_of, templates_of
from maniple.run_page.pictures import Figure, FigureFinder, Pictures, pictures_of
from maniple.run_page.story import Story
from maniple.run_page.tree import tree_of
from maniple.run_page.wording import duration, moment, size
from maniple.store import Artifact, RunRecord, Store
from maniple.store.protocols import read_event_pages

_PACKAGE = __name__.rpartition(".")[0]


async def page_of(store: Store, run: RunRecord, finder: FigureFinder) -> str:
    """Return the page of a run, however it ended or stands; what is malformed in its records is left out.

    Raises:
        StoreError: the records cannot be read.
    """
    story = Story()
    async for events in read_event_pages(store.events, run.run_id):
        await asyncio.to_thread(story.hear, events)
    rows = await store.ledger.list_by_run(run.run_id)
    artifacts = await store.artifacts.list_by_run(run.run_id)
    shown = [step.screenshot for step in story.steps if step.screenshot]
    pictures = await pictures_of(store, artifacts, shown)
    await asyncio.to_thread(enter_times, story.calls, rows)
    figures = await finder.find_all(await asyncio.to_thread(image_targets, story.result))
    return await asyncio.to_thread(render, story, run, artifacts, pictures, figures)


def render(
    story: Story,
    run: RunRecord,
    artifacts: Collection[Artifact],
    pictures: Pictures,
    figures: Mapping[str, Figure] | None = None,
) -> str:
    """Return the page as HTML. Blocks."""
    data = as_data(story, run, artifacts)
    return _template().render(
        policy=policy(),
        style=Markup(_style()),
        data=data,
        steps=story.steps,
        more_steps=story.more_steps,
        plan=story.plan,
        usage=list(story.usage.values()),
        tools=by_tool(data["tools_used"]),
        result=Markup(as_html(story.result, figures)) if story.result else "",
        tree=tree_of(story.result),
        pictures=pictures.by_artifact,
        recordings=pictures.recordings,
    )


def policy() -> str:
    """Return the page's content security policy: its own style, pictures within it, and nothing else."""
    return (
        f"default-src 'none'; style-src {digest_of(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _web_address(url: str) -> str:
    """Return an address that may be followed from the page; "" for any other."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _style() -> str:
    return style_of(_PACKAGE, "page.css")


@cache
def _template() -> Template:
    environment = templates_of(_PACKAGE)
    environment.filters |= {"duration": duration, "moment": moment, "size": size, "web_address": _web_address}
    return environment.get_template("page.html")
