"""Loaders of LangChain as readers of documents."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError

from maniple.capabilities.extensions import document_loaders
from maniple.cli.doctor.checks import check_extensions
from maniple.config import FetchSettings, Settings
from maniple.config.web_settings import ReaderSettings
from maniple.crawler import Crawler
from maniple.errors import ConfigError, FetchError, FileError
from maniple.reading import MAX_TEXT_CHARACTERS, UnreadableDocument
from maniple.reading.fork_server import ForkServer
from maniple.reading.loaders import DocumentLoader, DocumentLoaders, load_document, suffix_of
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.text_file import LineRange
from maniple.workspace import Workspaces
from tests.crawler.web import Reply, open_site

pytestmark = pytest.mark.anyio

MODULE = """
import os
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

class Subtitles(BaseLoader):
    def __init__(self, path, separator="|"):
        self.path, self.separator = Path(path), separator

    def lazy_load(self):
        for part in self.path.read_text().split(self.separator):
            yield Document(part, metadata={"title": self.path.name})

class Nosy(Subtitles):
    def lazy_load(self):
        try:
            Path(self.path.parent, "written").write_text("x" * 100)
            wrote = "wrote"
        except OSError:
            wrote = "refused"
        yield Document(f"{sorted(os.environ.keys() - {'LC_CTYPE', 'PWD'})} {wrote} {self.path.parent}")

class Endless(Subtitles):
    def lazy_load(self):
        while True:
            yield Document("and on " * 10_000 + chr(0) + chr(0xD800))

class Silent(Subtitles):
    def lazy_load(self):
        while True:
            pass

class Stubborn(Subtitles):
    def lazy_load(self):
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

class Broken(Subtitles):
    def lazy_load(self):
        raise KeyError("no\\nsubtitles" * 1_000)

class Leaving(Subtitles):
    def __init__(self, path):
        raise SystemExit(3)

class Unreadable(Exception):
    def __str__(self):
        raise ValueError

class Odd(Subtitles):
    def lazy_load(self):
        raise Unreadable

class Cancelled(Subtitles):
    def lazy_load(self):
        raise GeneratorExit

class Nothing:
    def __init__(self, path):
        pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package with loaders for this process and for readers' processes; return its module."""
    name = f"loaders_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / f"{name}.py").write_text(MODULE)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[maniple.readers]\nsubtitles = {name}:Subtitles\n")
    monkeypatch.syspath_prepend(folder)
    # Readers' processes do not take the path of this one.
    program = tmp_path / "python"
    run = "import runpy; runpy.run_module(sys.argv[-1], run_name='__main__')"
    start = f"import sys; sys.path.insert(0, {str(folder)!r}); {run}"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -c "{start}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr("maniple.reading.fork_server.sys.executable", str(program))
    return name


@pytest.fixture
def fork_server(module: str) -> Iterator[ForkServer]:
    loaders = {
        ".srt": DocumentLoader(f"{module}:Subtitles"),
        ".nosy": DocumentLoader(f"{module}:Nosy"),
        ".broken": DocumentLoader(f"{module}:Broken"),
        "application/x-subtitles": DocumentLoader(f"{module}:Subtitles", {"separator": ";"}),
    }
    with closing(ForkServer(DocumentLoaders(loaders))) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "media_type", "found"),
    [
        ("a/b.srt", "application/octet-stream", "S"),
        ("a/B.SRT", "", "S"),
        ("https://a.test/b.srt?x=y.txt", "text/plain", "S"),
        ("https://a.test/b.srt", "text/html", None),
        ("https://a.test/", "text/x-it", "T"),
        ("b.srt", "text/x-it", "T"),
        ("page.html", "text/html", "H"),
        ("srt", "", None),
        ("b.txt", "text/plain", None),
    ],
)
def test_a_loader_is_found_by_media_type_and_suffix(name: str, media_type: str, found: str | None) -> None:
    by_type = {key: DocumentLoader(use) for key, use in ((".srt", "S"), ("text/x-it", "T"), (".html", "H"))}
    loader = DocumentLoaders(by_type).find(name, media_type)
    assert (loader and loader.use) == found
    assert DocumentLoaders().find(name, media_type) is None


@pytest.mark.parametrize("name", ["a", "a.", "a.b c", "a.\u00e4", f"a.{'b' * 30}", "a.b\0c"])
def test_a_suffix_is_a_short_word(name: str) -> None:
    assert suffix_of(name) == ""


async def test_a_file_is_read_in_a_process_that_can_do_nothing_else(fork_server: ForkServer) -> None:
    loader = fork_server.loaders.by_type[".nosy"]
    document = await fork_server.load(loader, b"", "../a.nosy")
    environment, wrote, folder = document.markdown.split(" ")
    assert (environment, wrote) == ("[]", "refused")
    assert not await asyncio.to_thread(Path(folder).exists)


async def test_documents_are_joined_and_the_file_has_only_the_suffix(fork_server: ForkServer) -> None:
    loader = fork_server.loaders.by_type[".srt"]
    document = await fork_server.load(loader, b" One||Two\n# Three ", "/secret/name.srt")
    assert (document.title, document.markdown) == ("document.srt", "One\n\nTwo\n# Three")
    assert not document.headed


async def test_a_loader_that_never_ends_is_stopped(
    fork_server: ForkServer, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fork_server.load(fork_server.loaders.by_type[".srt"], b"warm", "a.srt")
    monkeypatch.setattr("maniple.reading.fork_server._TIMEOUT_SECONDS", 0.5)
    with pytest.raises(UnreadableDocument, match="too long"):
        await fork_server.load(DocumentLoader(f"{module}:Silent"), b"", "a.srt")


@pytest.mark.slow
@pytest.mark.parametrize(("loader", "words"), [("Silent", "too long"), ("Stubborn", "memory or time")])
async def test_a_loader_that_works_for_ever_is_ended_by_its_cpu_time(
    fork_server: ForkServer, module: str, monkeypatch: pytest.MonkeyPatch, loader: str, words: str
) -> None:
    monkeypatch.setattr("maniple.reading.fork_server._TIMEOUT_SECONDS", 250)
    with pytest.raises(UnreadableDocument, match=words):
        await fork_server.load(DocumentLoader(f"{module}:{loader}"), b"", "a.srt")


def test_an_endless_document_is_cut(module: str) -> None:
    document = load_document(f"{module}:Endless", {}, "x")
    assert len(document.markdown) == MAX_TEXT_CHARACTERS
    assert document.note
    document.markdown.encode()
    assert "\0" not in document.markdown


@pytest.mark.parametrize(
    ("attribute", "named"),
    [
        ("Broken", "KeyError"),
        ("Leaving", "SystemExit"),
        ("Odd", "Unreadable"),
        ("Cancelled", "GeneratorExit"),
        ("Absent", "AttributeError"),
        ("Nothing", "TypeError"),
    ],
)
def test_whatever_a_loader_raises_is_a_short_reason(module: str, attribute: str, named: str) -> None:
    with pytest.raises(UnreadableDocument, match=named) as caught:
        load_document(f"{module}:{attribute}", {}, "x")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


async def test_an_uploaded_file_is_read_with_its_loader(fork_server: ForkServer, tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    workspace = workspaces.open("t")
    workspace.write("talk.srt", b"Hello.|Good bye.")
    workspace.write("talk.broken", b"x")
    documents = WorkspaceDocuments(fork_server)
    assert "Hello.\n" in (await documents.open(workspace, "talk.srt", LineRange(1, 50))).text
    document = await documents.read(workspace, "talk.srt")
    assert document is not None
    assert document.text == "Hello.\n\nGood bye."
    assert documents.needs_conversion("talk.srt", b"Hello.")
    assert not documents.needs_conversion("talk.txt", b"Hello.")
    with pytest.raises(FileError, match="KeyError"):
        await documents.read(workspace, "talk.broken")
    raw = await documents.open(workspace, "talk.srt", LineRange(1, 50), is_source=True)
    assert "Hello.|" in raw.text


async def test_a_fetched_file_is_read_with_its_loader_and_no_other(fork_server: ForkServer) -> None:
    crawler = Crawler(FetchSettings(allow_private=("127.0.0.0/8",), robots=False), fork_server=fork_server)
    binary = b"One\0;Two"
    async with open_site({}) as site:
        site.pages["/a"] = Reply(binary, "application/x-subtitles")
        site.pages["/b.srt"] = Reply(b"One|Two", "video/x-unknown")
        site.pages["/c"] = Reply(binary, "application/x-others")
        site.pages["/d.srt"] = Reply("<title>A page</title><main><p>About a file.</main>")
        texts = [(await crawler.crawl(f"{site.url}/{name}")).markdown for name in ("a", "b.srt", "d.srt")]
        assert texts == ["One\n\nTwo", "One\n\nTwo", "About a file."]
        with pytest.raises(FetchError):
            await crawler.crawl(f"{site.url}/c")


def read_with(use: str, name: str = ".srt") -> Settings:
    return Settings(readers={name: ReaderSettings(use=use, options={"separator": ";"})})


async def test_the_settings_name_a_class_or_a_packages_entry_point(module: str) -> None:
    own = await asyncio.to_thread(document_loaders, read_with(f"{module}:Subtitles"))
    assert own == document_loaders(read_with("subtitles"))
    assert own.by_type[".srt"] == DocumentLoader(f"{module}:Subtitles", {"separator": ";"})
    assert [finding.status for finding in check_extensions(read_with("subtitles"))] == ["ok"]


def test_a_reader_that_no_package_offers_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"readers\.\.srt"):
        document_loaders(read_with("absent"))


@pytest.mark.parametrize("use", ["absent", "no_such_package_here:Loader", "json:loads"])
def test_a_reader_that_cannot_be_used_is_a_finding(use: str) -> None:
    (finding,) = check_extensions(read_with(use))
    assert (finding.status, use in finding.detail) == ("problem", True)


@pytest.mark.parametrize("name", ["srt", ".SRT", "*", "text/", "a.srt", ""])
def test_a_type_is_a_suffix_or_a_media_type(name: str) -> None:
    with pytest.raises(ValidationError):
        read_with("a:B", name)
