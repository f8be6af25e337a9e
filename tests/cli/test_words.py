import json

import pytest

from maniple.cli.text import (
    arguments_line,
    drop_exit_code,
    duration,
    failure_mark,
    one_line,
    result_line,
    result_lines,
    step_line,
    table_lines,
)
from maniple.events import BrowserStepChanged
from maniple.text import counted

TRACEBACK = """before
[stderr]
Traceback (most recent call last):
  File "/run/maniple/snippet", line 1, in <module>
    import sympy
ModuleNotFoundError: No module named 'sympy'
[exit code 1]"""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
    ],
)
def test_times_are_written_for_readers(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_numbers_take_the_plural_they_need() -> None:
    assert [counted(n, "token") for n in (0, 1, 1204)] == ["0 tokens", "1 token", "1,204 tokens"]


def test_lines_are_joined_and_cut() -> None:
    assert one_line("a  b\n\n  c\n") == "a b ⏎ c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ("4", ["4"]),
        ("", ["(no output)"]),
        ("[]", ["0 items"]),
        ("a\n\nb\nc\n", ["a", "b", "c"]),
        ("a\nb\nc\nd\ne", ["a", "b", "c", "… 2 more lines"]),
        ("a\nb\nc\nd\n[exit code 1]", ["a", "b", "c", "… 1 more line"]),
        ("[stderr]\nls: no\n[exit code 2]", ["ls: no"]),
        (TRACEBACK, ["ModuleNotFoundError: No module named 'sympy'"]),
        (
            json.dumps([{"title": "Tea", "url": "https://tea.example/a", "cite": 2, "content": "c"}] * 5),
            ["5 results", *["[2] Tea (tea.example)"] * 3, "… 2 more results"],
        ),
        ('[{"url": "https://b.example"}]', ["1 result", "https://b.example (b.example)"]),
        ('["a", {"b": 1}]', ["2 items", "a", '{"b": 1}']),
        ('{"rows": 420, "name": "x"}', ["rows: 420", "name: x"]),
        ('{"result_content": "It says 4.", "generated_gif_path": null}', ["It says 4."]),
        (
            "# Tea\n\nSource [3]: https://tea.example/x\n\n" + "y" * 5_000,
            ["[3] Tea (tea.example), 5,000 characters"],
        ),
        ('{"a": ', ['{"a":']),
        ("[" * 100_000, ["[" * 399 + "…"]),
        ('["\\u001b[2J\\u202ehidden\\nline"]', ["1 item", "hidden ⏎ line"]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_result_of_a_tool_is_shown_as_people_read_it(result: str, lines: list[str]) -> None:
    assert result_lines(result) == lines


def test_a_single_argument_goes_without_its_name() -> None:
    assert arguments_line({"code": "print(1)\nprint(2)"}) == "print(1) ⏎ print(2)"
    assert arguments_line({"name": "a.txt", "lines": [1, 2]}) == "name=a.txt, lines=[1, 2]"
    assert arguments_line({}) == ""


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("4\n", "4"),
        ("", "(no output)"),
        (TRACEBACK, "ModuleNotFoundError: No module named 'sympy'"),
        ("Traceback (most recent call last):\n  odd", "Traceback (most recent call last): ⏎ odd"),
        ("ValueError: said without a traceback\nmore", "ValueError: said without a traceback ⏎ more"),
    ],
)
def test_a_result_is_one_line_and_a_traceback_its_error(result: str, line: str) -> None:
    assert result_line(result) == line


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ({"state": "acting", "action": {"name": "wait", "parameters": {}}}, ""),
        ({"state": "observing", "action": None}, ""),
        (
            {
                "state": "observing",
                "action": {"name": "click_element", "parameters": {"index": 7}},
                "success": True,
            },
            "3 click_element 7 (1.5 s): Clicked ⏎ it",
        ),
        (
            {"state": "observing", "action": {"name": "go_back", "parameters": None}, "success": False},
            "3 go_back (1.5 s): ✘ Clicked ⏎ it",
        ),
    ],
)
def test_a_step_of_the_browser_is_a_line_once_it_is_known_what_came_of_it(known, line):
    step = BrowserStepChanged(tool_call_id="c", number=3, observation="Clicked\nit", seconds=1.5, **known)
    assert step_line(step) == line


@pytest.mark.parametrize(
    ("result", "mark"),
    [
        (TRACEBACK, "✘ exit code 1"),
        (
            "killed\n[exit code 137, SIGKILL]\n[took 2.0 s]\n[sandbox: started again]",
            "✘ exit code 137, SIGKILL",
        ),
        ("[timeout: stopped after 60 seconds; it had printed nothing]", "✘ timeout"),
        ("4", ""),
        ("[exit code 0]", ""),
        ("a page about\n[exit code 3]\n" + "and more\n" * 20, ""),
    ],
)
def test_a_failed_command_is_marked_with_its_exit_code(result: str, mark: str) -> None:
    assert failure_mark(result) == mark
    assert "[exit code 1" not in drop_exit_code(result)


def test_the_columns_of_a_table_are_aligned_by_the_width_of_its_characters() -> None:
    rows = [("name", "n"), ("日本", "12")]
    assert table_lines(rows, right_from=1) == ["name   n", "日本  12"]
    assert table_lines([]) == []
