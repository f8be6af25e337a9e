"""Addresses as links (OSC 8), where the terminal shows them."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from maniple.cli.render.document_text import SafeMarkdown
from maniple.cli.render.links import can_show_links, link_addresses, link_style
from tests.cli.processes import PROMPT, environment, on_terminal, run
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
LINK = re.compile(r"\x1b\]8;[^;]*;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\", re.DOTALL)
ANSWER = "See [my bank](https://evil.example/a?b=1) and <https://a.example/ü>, or mail <mailto:a@b.example>."


def shown_links(markdown: str, *, links: bool = True, width: int = 80) -> list[tuple[str, str]]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, no_color=True)
    console.print(SafeMarkdown(markdown, links=links))
    return [(target, re.sub(r"\x1b\[[0-9;]*m", "", text)) for target, text in LINK.findall(file.getvalue())]


def test_the_printed_address_is_a_link_and_the_text_that_a_model_chose_is_not() -> None:
    assert shown_links(ANSWER) == [
        ("https://evil.example/a?b=1", "https://evil.example/a?b=1"),
        ("https://a.example/%C3%BC", "https://a.example/%C3%BC"),
    ]
    assert shown_links(ANSWER, links=False) == []


def test_each_line_of_a_wrapped_address_opens_the_whole_address() -> None:
    address = f"https://a.example/{'x' * 60}"
    parts = shown_links(f"[a]({address})", width=30)
    assert len(parts) > 1 and {target for target, _ in parts} == {address}


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "file:///etc/passwd", "https://", "http://[", "a.b"]
)
def test_only_addresses_of_the_web_are_links(address: str) -> None:
    assert link_style(address) is None


def test_addresses_in_text_end_before_the_punctuation_of_the_sentence() -> None:
    text = link_addresses(Text("(see https://a.example/x), or http://b.example."))
    assert [text.plain[span.start : span.end] for span in text.spans] == [
        "https://a.example/x",
        "http://b.example",
    ]


@pytest.mark.parametrize(
    ("environ", "can"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "7006"}, True),
        ({"VTE_VERSION": "4903"}, False),
        ({"WT_SESSION": "a"}, True),
        ({"TMUX": "/tmp/x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({"TMUX": "/tmp/x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a"}, False),
        ({"TMUX": "/tmp/x", "VTE_VERSION": "7006"}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "0", "VTE_VERSION": "7006"}, False),
    ],
)
def test_a_terminal_that_might_print_the_sequences_gets_none(environ: dict[str, str], can: bool) -> None:
    assert can_show_links(environ) is can


async def test_an_answer_has_links_on_a_terminal_that_shows_them_and_none_in_a_pipe(tmp_path: Path) -> None:
    with serving({"coordinator": [reply(ANSWER)]}) as server:
        env = environment(tmp_path, server.base_url, FORCE_HYPERLINK="1")
        async with on_terminal(folder=tmp_path, env=env) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter("where?", "evil", "✔ completed")
            assert await terminal.leave() == 0
        assert "https://evil.example/a?b=1" in [target for target, _ in LINK.findall(terminal.raw)]
        _, output, _ = await run("where?", folder=tmp_path, env=env)
    assert "evil.example" in output and "\x1b" not in output
