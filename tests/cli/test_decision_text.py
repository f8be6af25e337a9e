"""Calls that wait for a decision, highlighted on a terminal."""

from pathlib import Path
from typing import Any

import pytest

from maniple.cli.render.decision_text import highlight, language_of, style_question
from maniple.cli.render.run_text import describe_question
from tests.cli.pauses import approval, plan_review, question
from tests.cli.processes import ENTER, PROMPT, environment, on_terminal
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize(
    ("tool_name", "name", "arguments", "language"),
    [
        ("python_repl_tool", "code", {"code": "print(1)"}, "python"),
        ("bash_tool", "cmd", {"cmd": "ls -l"}, "bash"),
        ("patch", "patch", {"patch": DIFF}, "diff"),
        ("write_file", "content", {"path": "a/b.py", "content": "x = 1"}, "python"),
        ("write_file", "content", {"path": "notes", "content": "words"}, ""),
        ("run", "code", {"code": "let x", "language": "JavaScript"}, "javascript"),
        ("run", "code", {"code": "let x"}, ""),
        ("post", "body", {"body": {"a": 1}}, "json"),
        ("post", "body", {"body": '{"a": 1}'}, "json"),
        ("post", "body", {"body": "{broken"}, ""),
        ("post", "number", {"number": 3}, ""),
    ],
)
def test_the_language_of_an_argument_follows_from_the_call(
    tool_name: str, name: str, arguments: dict[str, Any], language: str
) -> None:
    assert language_of(tool_name, name, arguments) == language


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "rm -r results\n\n\tls  \n"},
        {"code": "\n\n'''open\nx = 1"},
        {"patch": DIFF, "why": "because\u202e"},
        {"body": {"a": [1, None]}, "count": 3},
        {"cmd": "a\r\nb\x1b[31mred"},
        {"code": "x = 1\n" * 20_000},
    ],
    ids=lambda value: next(iter(value)),
)
def test_colours_change_no_character_of_what_is_decided_on(arguments: dict[str, Any]) -> None:
    for tool_name in ("bash_tool", "python_repl_tool"):
        for reason in ("approval", "unknown_result"):
            asked = approval(reason, arguments=arguments, error="cmd: missing", unclear=True)
            asked.payload["tool_name"] = tool_name
            assert style_question(asked).plain == describe_question(asked)
    for other in (plan_review(), question("Which?", "a", "b"), approval(arguments={})):
        assert style_question(other).plain == describe_question(other)


def test_code_and_diffs_have_colours_and_a_language_that_nobody_knows_has_none() -> None:
    assert style_question(approval()).spans
    added = highlight(DIFF, "diff")
    assert (
        len({str(span.style) for span in added.spans if DIFF[span.start : span.end].strip()[:1] in "+-"}) > 1
    )
    assert not highlight("x = 1", "nonsense-language").spans
    assert not highlight("x = 1", "").spans


@pytest.mark.parametrize("no_color", [False, True])
async def test_code_that_waits_for_approval_is_highlighted_at_the_prompt(
    tmp_path: Path, no_color: bool
) -> None:
    more = {"NO_COLOR": "1"} if no_color else {}
    with serving(SIMPLE) as server:
        env = environment(tmp_path, server.base_url, MANIPLE_RUNS__APPROVAL="python_repl_tool", **more)
        async with on_terminal("1+3=?", folder=tmp_path, env=env) as terminal:
            await terminal.see(r"code: print\(1\+3\)", 40)
            await terminal.see("y runs it")
            await terminal.see(PROMPT)
            terminal.type(f"y{ENTER}")
            await terminal.see("✔ completed")
            assert await terminal.ended() == 0
    assert ("code: print(1+3)" in terminal.raw) == no_color, "the call is printed in one piece"
