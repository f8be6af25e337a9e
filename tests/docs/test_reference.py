"""The generated pages of the manual are current and complete."""

import pytest

import maniple
from maniple.api import create_app
from maniple.config import Settings
from maniple.events.base import EVENT_TYPES
from manual.reference import FOLDER, reference_pages
from manual.settings_page import read_comments

PAGES = reference_pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str):
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name], "run `make docs`"


def test_the_pages_have_every_event_route_section_and_public_name():
    assert [name for name in EVENT_TYPES if f"\n## {name}\n" not in PAGES["events.md"]] == []
    routes = create_app(Settings()).openapi()["paths"]
    assert [path for path in routes if f" {path}`\n" not in PAGES["http.md"]] == []
    assert [name for name in maniple.__all__ if f"::: maniple.{name}\n" not in PAGES["python.md"]] == []
    assert [key for key in Settings.model_fields if f"`{key}" not in PAGES["settings.md"]] == []


def test_an_event_is_explained_by_its_own_comment_alone():
    assert "/**" not in PAGES["events.md"]
    assert f"## end_of_agent\n\n{EVENT_TYPES['end_of_agent'].__doc__}\n" in PAGES["events.md"]


def test_the_explanation_of_a_setting_is_read_where_it_is_commented_out_and_over_lines():
    comments = read_comments(
        "one:\n"
        "  two: 1            # of two\n"
        "                    # and more\n"
        "  # three:          # of three\n"
        "  #   - four: x     # of four\n"
        "# A sentence: not a key of the file\n"
        "five: []            # of five\n"
    )
    assert comments[("one", "two")] == "of two and more"
    assert comments[("one", "three")] == "of three"
    assert comments[("one", "three", "four")] == "of four"
    assert comments[("five",)] == "of five"
