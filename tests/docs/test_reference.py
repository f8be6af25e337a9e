"""The generated pages of the manual are current and complete."""

import pytest

import maniple
from maniple.api import create_app
from maniple.config import Settings
from maniple.events.base import EVENT_TYPES
from manual.reference import FOLDER, reference_pages
from manual.settings_page import read_comments


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as they are generated now."""
    return reference_pages()


def test_each_generated_page_is_current(pages: dict[str, str]):
    stored = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert stored.keys() == pages.keys()
    assert [name for name in pages if stored[name] != pages[name]] == [], "run `make docs`"


def test_the_pages_have_every_event_route_section_and_public_name(pages: dict[str, str]):
    assert [name for name in EVENT_TYPES if f"\n## {name}\n" not in pages["events.md"]] == []
    routes = create_app(Settings()).openapi()["paths"]
    assert [path for path in routes if f" {path}`\n" not in pages["http.md"]] == []
    assert [name for name in maniple.__all__ if f"::: maniple.{name}\n" not in pages["python.md"]] == []
    assert [key for key in Settings.model_fields if f"`{key}" not in pages["settings.md"]] == []


def test_an_event_is_explained_by_its_own_comment_alone(pages: dict[str, str]):
    assert "/**" not in pages["events.md"]
    assert f"## end_of_agent\n\n{EVENT_TYPES['end_of_agent'].__doc__}\n" in pages["events.md"]


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
