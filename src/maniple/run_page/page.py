"""The page of a run: one self-contained HTML file without scripts."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Template
from markupsafe import Markup

from maniple.evidence.record import Source
from maniple.report_document import render_report
from maniple.run_page.lenient_parsing import LONGEST, as_mapping, as_mappings, as_number, as_text, parse_json
from maniple.run_page.markup import image_targets
from maniple.run_page.page_assets import csp_hash, load_templates, read_style
from maniple.run_page.pictures import RECORDING, Figure, FigureFinder, Pictures, load_pictures
from maniple.run_page.run_history import RunHistory, Step
from maniple.store import Artifact, RunRecord, Store, ToolCallRecord
from maniple.store.protocols import read_event_pages

MAX_FILES = 200
_STOPPED = {
    "queued": "The run has not started yet.",
    "running": "The run is still in progress.",
    "completed": "The run is complete.",
    "cancelled": "The run was cancelled.",
    "interrupted": "The run is waiting for an answer.",
    "budget_exhausted": "The budget of the run is exhausted; the result is partial.",
    "failed": "The run failed.",
}


def collect_page_data(story: RunHistory, run: RunRecord, artifacts: Collection[Artifact]) -> dict[str, Any]:
    """Return the page's contents as JSON values. Every key is always present."""
    status = story.status or as_text(run.status)
    begin, end, used = run.started_at or run.created_at, run.ended_at, run.usage
    counted = list(story.usage.values())
    screenshots = {step.screenshot for step in story.steps}
    return {
        "asked": story.request or _request_of(run),
        "result": story.result,
        "steps": [asdict(step) for step in story.steps],
        "tools_used": _tools_used(story.steps),
        "llm_usage": {
            "model_calls": max(used.model_calls, sum(one.calls for one in counted)),
            "input_tokens": max(used.input_tokens, sum(one.input_tokens for one in counted)),
            "output_tokens": max(used.output_tokens, sum(one.output_tokens for one in counted)),
            "cost": as_number(used.cost) or 0.0,
        },
        "metadata": {
            "run_id": as_text(run.run_id),
            "thread_id": as_text(run.thread_name),
            "status": status,
            "stop_reason": story.question
            or story.error
            or as_text(run.error)
            or _STOPPED.get(status, status),
            "success": status == "completed",
            "started": as_number(begin),
            "ended": as_number(end),
            "duration_seconds": as_number(end - begin) if end is not None else None,
        },
        "files": [
            {"name": as_text(one.name, 200), "media_type": as_text(one.media_type, 100), "size": one.size}
            for one in artifacts
            if one.name != RECORDING and one.artifact_id not in screenshots
        ][:MAX_FILES],
    }


def _request_of(run: RunRecord) -> str:
    """Return the newest message of a run's request, for a run without events."""
    messages = as_mappings(as_mapping(parse_json(run.request)).get("messages"))
    newest = messages[-1] if messages else {}
    return as_text(as_mapping(newest.get("data")).get("content"), LONGEST)


def _tools_used(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {"name": step.action, "duration_seconds": step.seconds, "success": step.success}
        for step in steps
        if step.action
    ]


def by_tool(used: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add up the calls of each tool, those with the most first."""
    tools: dict[str, dict[str, Any]] = {}
    for one in used:
        tool = tools.setdefault(one["name"], {"name": one["name"], "calls": 0, "failed": 0, "seconds": None})
        tool["calls"] += 1
        tool["failed"] += one["success"] is False
        if one["duration_seconds"] is not None:
            tool["seconds"] = (tool["seconds"] or 0.0) + one["duration_seconds"]
    return sorted(tools.values(), key=lambda tool: -tool["calls"])


def add_call_times(calls: Iterable[tuple[Step, Any]], rows: Iterable[ToolCallRecord]) -> None:
    """Set the start time, duration and outcome of each tool call from the ledger.

    Events and ledger use different ids for a call. A row is assigned to the first call of its tool with the
    same arguments. If the user changed the arguments, it is assigned to the first remaining call of its tool.
    """
    known: dict[tuple[str, str], deque[ToolCallRecord]] = defaultdict(deque)
    for row in rows:
        if "?" not in row.tool_call_id:  # a question to the user about a call
            known[row.tool_name, _canonical(parse_json(row.arguments))].append(row)
    unmatched = []
    for step, arguments in calls:
        found = known.get((step.action, _canonical(arguments)))
        if found:
            _set_times(step, found.popleft())
        else:
            unmatched.append(step)
    remaining: dict[str, deque[ToolCallRecord]] = defaultdict(deque)
    for (name, _), more in known.items():
        remaining[name] += more
    for step in unmatched:
        if remaining[step.action]:
            _set_times(step, remaining[step.action].popleft())


def _canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def _set_times(step: Step, row: ToolCallRecord) -> None:
    step.started = as_number(row.begun_at)
    if row.ended_at is not None:
        step.seconds = as_number(max(row.ended_at - row.begun_at, 0.0))
    status = as_mapping(parse_json(row.result)).get("status")
    step.success = {"success": True, "error": False}.get(status) if isinstance(status, str) else None


DEEPEST = 12
MAX_CHILDREN = 200
MAX_NODES = 2_000
MAX_JSON_LENGTH = 1_000_000
"""Characters."""


@dataclass(slots=True)
class Node:
    """A JSON value with its key or index as the label; an object or a list has children."""

    label: str
    shown: str
    children: list["Node"] = field(default_factory=list)


def parse_json_tree(answer: str) -> Node | None:
    """Return the JSON object or list that an answer consists of, fenced or not; None for other answers."""
    words = answer.strip()
    if words.startswith("```") and words.endswith("```"):
        words = words.strip("`").strip().removeprefix("json").strip()
    if not words.startswith(("{", "[")) or len(words) > MAX_JSON_LENGTH:
        return None
    value = parse_json(words)
    return _Tree().node("", value, 0) if isinstance(value, dict | list) else None


class _Tree:
    def __init__(self) -> None:
        self._left = MAX_NODES

    def node(self, label: str, value: Any, depth: int) -> Node:
        self._left -= 1
        if isinstance(value, dict):
            return self._many(label, "{}", value.items(), len(value), depth)
        if isinstance(value, list):
            return self._many(label, "[]", enumerate(value), len(value), depth)
        return Node(label, as_text(json.dumps(value, ensure_ascii=False)))

    def _many(self, label: str, kind: str, items: Iterable[tuple[Any, Any]], length: int, depth: int) -> Node:
        node = Node(label, f"{kind[0]}{length}{kind[1]}")
        for place, (name, one) in enumerate(items):
            if depth == DEEPEST or place == MAX_CHILDREN or self._left <= 0:
                node.children.append(Node("…", f"{length - place} more"))
                break
            node.children.append(
                self.node(as_text(name, 200) if isinstance(name, str) else str(name), one, depth + 1)
            )
        return node


UNKNOWN = "–"
_LATEST = 32_503_680_000
"""The year 3000, in Unix seconds. Later values are not times."""


def duration(seconds: float | None) -> str:
    """Return `250 ms`, `4.2 s` or `3 min 05 s`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02} s"


def moment(time: float | None) -> str:
    """Return a Unix time as `2026-11-22 20:15:07 UTC`."""
    if time is None or time > _LATEST:
        return UNKNOWN
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(bytes_: int) -> str:
    """Return `999 B`, `2.0 kB` or `1.5 MB`."""
    if bytes_ < 1000:
        return f"{bytes_} B"
    return f"{bytes_ / 1e3:,.1f} kB" if bytes_ < 1e6 else f"{bytes_ / 1e6:,.1f} MB"


_PACKAGE = __name__.rpartition(".")[0]


async def render_run_page(store: Store, run: RunRecord, finder: FigureFinder) -> str:
    """Return the page of a run in any state. Malformed records are left out.

    Raises:
        StoreError: the records cannot be read.
    """
    story = RunHistory()
    async for events in read_event_pages(store.events, run.run_id):
        await asyncio.to_thread(story.apply, events)
    rows = await store.ledger.list_by_run(run.run_id)
    artifacts = await store.artifacts.list_by_run(run.run_id)
    shown = [step.screenshot for step in story.steps if step.screenshot]
    pictures = await load_pictures(store, artifacts, shown)
    await asyncio.to_thread(add_call_times, story.calls, rows)
    figures = await finder.find_all(await asyncio.to_thread(image_targets, story.result))
    sources = await store.evidence(run.run_id).sources()
    return await asyncio.to_thread(render, story, run, artifacts, pictures, figures, sources)


def render(
    story: RunHistory,
    run: RunRecord,
    artifacts: Collection[Artifact],
    pictures: Pictures,
    figures: Mapping[str, Figure] | None = None,
    sources: Sequence[Source] = (),
) -> str:
    """Return the page as HTML. Blocks."""
    data = collect_page_data(story, run, artifacts)
    return _template().render(
        policy=policy(),
        style=Markup(_style()),
        data=data,
        steps=story.steps,
        more_steps=story.more_steps,
        plan=story.plan,
        usage=list(story.usage.values()),
        tools=by_tool(data["tools_used"]),
        result=Markup(_result(story.result, sources, figures or {})) if story.result else "",
        tree=parse_json_tree(story.result),
        pictures=pictures.by_artifact,
        recordings=pictures.recordings,
    )


def _result(markdown: str, sources: Sequence[Source], figures: Mapping[str, Figure]) -> str:
    return render_report(markdown, sources, {path: figure.data_url for path, figure in figures.items()})


def policy() -> str:
    """Return the page's content security policy. It allows only the page's style and embedded pictures."""
    return (
        f"default-src 'none'; style-src {csp_hash(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _web_address(url: str) -> str:
    """Return `url` if it is an HTTP address, else ""."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _style() -> str:
    return read_style(_PACKAGE, "page.css")


@cache
def _template() -> Template:
    environment = load_templates(_PACKAGE)
    environment.filters |= {"duration": duration, "moment": moment, "size": size, "web_address": _web_address}
    return environment.get_template("page.html")
