"""What the page says of a run, as values of JSON."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from maniple.run_page.lenient import LONGEST, mapping, mappings, number, parsed, text
from maniple.run_page.pictures import RECORDING
from maniple.run_page.story import Step, Story
from maniple.store import Artifact, RunRecord

MOST_FILES = 200
_STOPPED = {
    "queued": "It has not begun.",
    "running": "It is still at work.",
    "completed": "It came to its end.",
    "cancelled": "It was cancelled.",
    "interrupted": "It waits for an answer.",
    "budget_exhausted": "Its budget ran out; the result is partial.",
    "failed": "It failed.",
}


def as_data(story: Story, run: RunRecord, artifacts: Collection[Artifact]) -> dict[str, Any]:
    """Return what the page says as values of JSON; every key is always there."""
    status = story.status or text(run.status)
    begin, end, used = run.started_at or run.created_at, run.ended_at, run.usage
    counted = list(story.usage.values())
    screenshots = {step.screenshot for step in story.steps}
    return {
        "asked": story.asked or _asked_by(run),
        "result": story.result,
        "steps": [asdict(step) for step in story.steps],
        "tools_used": _tools_used(story.steps),
        "llm_usage": {
            "model_calls": max(used.model_calls, sum(one.calls for one in counted)),
            "input_tokens": max(used.input_tokens, sum(one.input_tokens for one in counted)),
            "output_tokens": max(used.output_tokens, sum(one.output_tokens for one in counted)),
            "cost": number(used.cost) or 0.0,
        },
        "metadata": {
            "run_id": text(run.run_id),
            "thread_id": text(run.thread_name),
            "status": status,
            "stop_reason": story.question or story.error or text(run.error) or _STOPPED.get(status, status),
            "success": status == "completed",
            "started": number(begin),
            "ended": number(end),
            "duration_seconds": number(end - begin) if end is not None else None,
        },
        "files": [
            {"name": text(one.name, 200), "media_type": text(one.media_type, 100), "size": one.size}
            for one in artifacts
            if one.name != RECORDING and one.artifact_id not in screenshots
        ][:MOST_FILES],
    }


def _asked_by(run: RunRecord) -> str:
    """Return the newest words of what the run was asked, for one that has told of nothing yet."""
    messages = mappings(mapping(parsed(run.request)).get("messages"))
    newest = messages[-1] if messages else {}
    return text(mapping(newest.get("data")).get("content"), LONGEST)


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
