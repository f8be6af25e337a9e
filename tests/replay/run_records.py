"""Runs as a store has them."""

import json
from typing import Any

from maniple.store import EventRecord, RunRecord, RunUsage

CALL = "r1_browser_browser_c1"
SHOT = "/api/artifacts/shot-1"


def events(*history_of: tuple[str, Any]) -> list[EventRecord]:
    """Return events as the store has them; a string is the stored data itself."""
    return [
        EventRecord(number, type_, data if isinstance(data, str) else json.dumps(data))
        for number, (type_, data) in enumerate(history_of, 1)
    ]


def step(number: int, **known: Any) -> tuple[str, dict[str, Any]]:
    """Return a step of the browser."""
    data = {"tool_call_id": CALL, "number": number, "state": "thinking", "phase": "", "thought": ""}
    empty = {"action": None, "observation": None, "success": None, "started": 1_800_000_000.0, "seconds": 0.0}
    return "browser_step", {**data, **empty, **known}


def run_record(**known: Any) -> RunRecord:
    """Return a run of which little is known."""
    row = {
        "run_id": "r1",
        "thread_id": "t1",
        "owner": "",
        "kind": "server",
        "process": "p",
        "status": "completed",
    }
    return RunRecord(**{**row, "request": "{}", "created_at": 1_800_000_000.0, "usage": RunUsage(), **known})


BROWSED = [
    ("run", {"run_id": "r1", "thread_id": "t1"}),
    ("start_of_workflow", {"workflow_id": "r1", "input": [{"role": "user", "content": "Buy a hat"}]}),
    ("start_of_agent", {"agent_name": "planner", "agent_id": "a"}),
    ("message", {"message_id": "m", "delta": {"content": '{"steps": []}'}}),
    ("end_of_agent", {"agent_name": "planner", "agent_id": "a"}),
    ("plan", {"title": "P", "steps": [{"agent_name": "browser", "title": "Buy", "status": "in_progress"}]}),
    ("start_of_agent", {"agent_name": "browser", "agent_id": "b"}),
    ("tool_call", {"tool_call_id": CALL, "tool_name": "browser", "tool_input": {"instruction": "Buy a hat"}}),
    step(1),
    ("browser_state", {"url": "https://shop.test/", "title": "Shop", "tabs": [], "screenshot": SHOT}),
    step(
        1,
        state="acting",
        thought="The button buys.",
        action={"name": "click_element", "parameters": {"index": 7}},
    ),
    step(
        1,
        state="observing",
        thought="The button buys.",
        action={"name": "click_element", "parameters": {"index": 7}},
        observation="Element with index 7 not found",
        success=False,
        seconds=0.25,
    ),
    (
        "usage",
        {"agent_name": "browser", "model": "m", "input_tokens": 900, "output_tokens": 30, "seconds": 1.5},
    ),
    (
        "usage",
        {"agent_name": "browser", "model": "m", "input_tokens": 100, "output_tokens": 70, "seconds": 0.5},
    ),
    (
        "tool_call_result",
        {
            "tool_call_id": CALL,
            "tool_name": "browser",
            "tool_result": '{"result_content": "Bought.", "generated_gif_path": null}',
        },
    ),
    ("end_of_agent", {"agent_name": "browser", "agent_id": "b"}),
    ("start_of_agent", {"agent_name": "reporter", "agent_id": "c"}),
    ("message", {"message_id": "n", "delta": {"content": "# Done\n\nA **hat** is bought."}}),
    ("end_of_agent", {"agent_name": "reporter", "agent_id": "c"}),
    ("run_status", {"status": "completed"}),
    (
        "final_session_state",
        {
            "messages": [
                {"role": "user", "content": "Buy a hat"},
                {"role": "user", "content": "# Done\n\nA **hat** is bought."},
            ]
        },
    ),
]

EVIL = [
    "</script><script>window.ran = 1</script>",
    "<!--<script>",
    "]]>--></style></title></textarea><img src=x onerror='window.ran=1'>",
    '" onmouseover="window.ran=1" style="background:url(http://127.0.0.1:9/x)',
    "javascript:window.ran=1",
    "data:text/html,<script>window.ran=1</script>",
    "{{ 7*7 }}{% raw %}<svg/onload=window.ran=1>",
    "http://127.0.0.1:9/[",
    "![](http://127.0.0.1:9/a.png) <iframe src=http://127.0.0.1:9/f></iframe>",
    "[x](javascript:window.ran=1) <style>@import 'http://127.0.0.1:9/s'</style>",
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/m"><base href=//127.0.0.1:9/>',
    '<link rel=preconnect href="http://127.0.0.1:9/"><object data=http://127.0.0.1:9/o></object>',
    "\x00\x1b[2J\u202egnp.exe\ud800\ufffe\U0001f600",
    "```json\n[[[1]]]\n```",
    '{"a": "</script>"}',
]
