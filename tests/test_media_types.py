"""What files are, by their names."""

import mimetypes

import pytest

from maniple.media_types import UNKNOWN, media_type_of


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.csv", "text/csv"),
        ("folder/a.PNG", "image/png"),
        ("report.md", "text/markdown"),
        ("a.webp", "image/webp"),
        ("table.csv.gz", "application/gzip"),
        ("a.tar.gz", "application/gzip"),
        ("notes", UNKNOWN),
        ("a.nothing", UNKNOWN),
        ("data:text/html,x.txt", "text/plain"),
        ("", UNKNOWN),
    ],
)
def test_the_last_suffix_decides_the_type_of_a_file(name: str, media_type: str) -> None:
    assert media_type_of(name) == media_type


def test_the_systems_table_of_types_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    mimetypes.init()
    monkeypatch.setitem(mimetypes.types_map, ".strange", "application/x-strange")
    assert mimetypes.guess_type("a.strange")[0] == "application/x-strange"
    assert media_type_of("a.strange") == UNKNOWN
