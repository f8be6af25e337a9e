"""What the browser is given: searches, and the files of the workspace."""

from pathlib import Path

import pytest

from maniple.errors import FileError
from maniple.search import SearchHit
from maniple.tools.thread_browser import browser_services
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio


class Engine:
    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        hits = [
            SearchHit("Tea", "https://tea.test/", f"{query} {limit}"),
            SearchHit("Note", "folder:a.txt", ""),
        ]
        return hits


@pytest.fixture
def places(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


@pytest.fixture
def services(places: Workspaces, tmp_path: Path):
    (tmp_path / "lent").mkdir()
    return browser_services(Engine(), places, tmp_path / "lent", max_bytes=10)


async def test_a_search_gives_what_a_browser_can_open(services):
    (found,) = await services.search("tea")
    assert (found.title, found.url, found.content) == ("Tea", "https://tea.test/", "tea 10")


def test_what_is_not_there_is_no_aid(tmp_path):
    services = browser_services(None, None, tmp_path, max_bytes=10)
    assert (services.search, services.save_file, services.open_file) == (None, None, None)


async def test_downloads_of_one_name_are_stored_beside_each_other(services, places, tmp_path):
    names = []
    for content in ("one", "two"):
        (tmp_path / "temporary").write_text(content)
        names.append(await services.save_file("a.csv", tmp_path / "temporary"))
    assert names == ["downloads/a.csv", "downloads/a-2.csv"]
    assert [places.open("local").read(name, 9).content for name in names] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../../etc/passwd", "downloads/passwd"),
        (".bashrc", "downloads/bashrc"),
        ("a\u202egpj.exe", "downloads/agpj.exe"),
        ("", "downloads/upload"),
        ("LICENSE", "downloads/LICENSE"),
    ],
)
async def test_the_name_of_a_download_leads_nowhere_else(services, tmp_path, name, path):
    (tmp_path / "temporary").write_text("x")
    assert await services.save_file(name, tmp_path / "temporary") == path


async def test_a_second_download_without_an_ending_has_a_name_too(services, tmp_path):
    (tmp_path / "temporary").write_text("x")
    assert [await services.save_file("LICENSE", tmp_path / "temporary") for _ in range(2)][
        1
    ] == "downloads/LICENSE-2"


async def test_what_is_uploaded_is_a_copy(services, places):
    places.open("local").write("sub/notes.txt", b"tea")
    lent = await services.open_file("sub/notes.txt")
    places.open("local").write("sub/notes.txt", b"changed")
    assert (lent.name, lent.read_bytes()) == ("notes.txt", b"tea")


async def test_links_and_large_files_are_not_uploaded(services, places):
    place = places.open("local")
    (place.path / "link").symlink_to("/etc/passwd")
    place.write("large", b"x" * 11)
    with pytest.raises(FileError, match="leads through a link"):
        await services.open_file("link")
    with pytest.raises(FileError, match="at most 10"):
        await services.open_file("large")
    with pytest.raises(FileError, match="There is no file"):
        await services.open_file("nothing")
