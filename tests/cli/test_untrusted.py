import pytest

from maniple.cli.text import clean, clean_event
from tests.cli.events import plan, tool


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]0;new title\x07b", "ab"),
        ("a\x1b]52;c;c2VjcmV0\x1b\\b", "ab"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("a\x1bP+q544e\x1b\\b", "ab"),
        ("a\x9b2Jb", "ab"),
        ("\x1bcreset", "reset"),
        ("half \x1b", "half "),
        ("half \x1b[", "half ["),
        ("bell\x07, backspace\x08, nul\x00, delete\x7f", "bell, backspace, nul, delete"),
        ("one\r\ntwo\u2028three", "one\ntwo\nthree"),
        ("overwritten\rby this", "overwrittenby this"),
        ("file\u202egpj.exe", "filegpj.exe"),
        ("lone \ud83d half", "lone  half"),
        ("tab\tand\nline, 中文, 👩‍💻 and é stay", "tab\tand\nline, 中文, 👩‍💻 and é stay"),
    ],
)
def test_what_a_terminal_would_obey_is_removed_and_words_stay(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_every_text_of_an_event_is_cleaned_its_keys_too() -> None:
    call, result = tool("python_repl_tool", "\x1b[2Jout", **{"co\x07de": ["\x1b[1mx", {"a": "\x1b[0my"}]})

    assert clean_event(call).data()["tool_input"] == {"code": ["x", {"a": "y"}]}
    assert clean_event(result).data()["tool_result"] == "out"
    assert clean_event(plan("completed", "failed", title="\x1b]0;x\x07T")).data()["title"] == "T"
