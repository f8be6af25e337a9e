"""The site of the manual, built by zensical, and the check of its links."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
MERMAID = ROOT / "web/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
"""What draws the diagrams of the web page. Without it the site's theme loads mermaid from unpkg.com."""

_LINK_ATTRIBUTES = ("href", "src")
_SITE_URL = re.compile(r"^site_url = .*$", re.MULTILINE)


class ManualError(Exception):
    """The site cannot be built; the text says what to do."""


def build_site(folder: Path, url: str = "") -> None:
    """Build the site of `docs/` into `folder`, which is replaced.

    `url` is where it will be published; "" for the address in `zensical.toml`.
    Raises `ManualError` if zensical warns of a page, or a link of the site leads nowhere.
    """
    if not MERMAID.is_file():
        raise ManualError(f"{MERMAID} does not exist. Run `bash setup.sh dev`, which installs it.")
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        (project / "zensical.toml").write_text(site_settings(url), encoding="utf-8")
        shutil.copytree(ROOT / "docs", project / "docs")  # zensical follows no link out of its folder
        build = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"],
            cwd=project,
            check=False,
            capture_output=True,
            text=True,
        )
        if build.returncode:
            raise ManualError(f"zensical found faults in docs/. Repair them:\n{build.stderr}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(project / "site", folder)
    (folder / "javascripts").mkdir()
    shutil.copyfile(MERMAID, folder / "javascripts/mermaid.js")
    if broken := find_broken_links(folder):
        raise ManualError("Links of the site lead nowhere. Repair them in docs/:\n" + "\n".join(broken))


def site_settings(url: str = "") -> str:
    """Return `zensical.toml`, completed by the sections of `llms.txt`: those of the navigation.

    With a `url` the site has that address. Raises `ManualError` if it is no address of a site.
    """
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    if url:
        text = _SITE_URL.sub(lambda _: f"site_url = {json.dumps(_check_address(url))}", text, count=1)
    entries = [item for entry in tomllib.loads(text)["project"]["nav"] for item in entry.items()]
    # JSON's strings and lists of strings are TOML's, too.
    sections = [
        f"{json.dumps(title)} = {json.dumps(pages)}" for title, pages in entries if not isinstance(pages, str)
    ]
    return "\n".join([text, "[project.plugins.llmstxt.sections]", *sections, ""])


def _check_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ManualError(
            f"{url!r} is no address of a site. Give one such as https://docs.example.org/maniple/."
        )
    return url if url.endswith("/") else f"{url}/"


def find_broken_links(folder: Path) -> list[str]:
    """Return `page: link` for each link within the site whose file or anchor does not exist.

    zensical itself checks links to Markdown pages, but not those to other files.
    """
    folder = folder.resolve()
    pages = {path: _Page(path) for path in sorted(folder.rglob("*.html")) if path.name != "404.html"}
    return [
        f"{path.relative_to(folder)}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not _leads_somewhere(folder, path, link, pages)
    ]


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in _LINK_ATTRIBUTES and value and not urlsplit(value).scheme:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def _leads_somewhere(folder: Path, path: Path, link: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.is_relative_to(folder):
        return False
    page = pages.get(target)
    return not parts.fragment or page is None or unquote(parts.fragment) in page.anchors
