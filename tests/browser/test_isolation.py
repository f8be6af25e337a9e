"""A Chromium of a server that is root, from whose pages somebody has broken out."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from maniple.browser.drivers.chromium import Chromium
from maniple.browser.drivers.page_events import _copy_regular
from maniple.browser.isolation import ChromiumFolders
from maniple.browser.launch import find_executable, open_browser
from maniple.browser.page import PageServices
from maniple.config import BrowserSettings, FetchSettings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError, Unavailable
from maniple.sandbox import find_chromium_isolation
from maniple.sandbox.chromium import BubblewrapChromium
from tests.browser.driving import Driver
from tests.browser.processes import children, chromium_processes, command_of, until
from tests.crawler.web import Reply, Site
from tests.sandbox.nobody import as_nobody, needs_root

pytestmark = [pytest.mark.anyio, *needs_root, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

_SETTINGS = BrowserSettings(timeout_seconds=20)


@asynccontextmanager
async def _started(port: int | None = None) -> AsyncIterator[tuple[Any, int]]:
    """A page, with no guard before it, and the process id of its browser."""
    executable = find_executable(_SETTINGS)
    isolation = find_chromium_isolation(SandboxSettings())
    before = set(chromium_processes())
    resolve = AddressGuard(FetchSettings()).resolve
    async with aclosing(Chromium(_SETTINGS, executable, resolve, isolation, port)) as chromium:
        context = await chromium.new_context()
        started: set[int] = set()

        def has_one() -> bool:
            # Between fork and exec a process has the command of its parent.
            nonlocal started
            started = set(chromium_processes()) - before
            return len(started) == 1

        await until(has_one)
        (process,) = started
        yield await context.new_page(), process


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("secret")
    file.chmod(0o644)
    return file


async def test_the_browser_runs_as_nobody_who_can_gain_no_rights() -> None:
    async with _started() as (_, process):
        lines = await asyncio.to_thread(Path(f"/proc/{process}/status").read_text)
        status = dict(line.split(":\t", 1) for line in lines.splitlines())
        assert status["Uid"].split() == ["65533"] * 4
        assert status["Gid"].split() == ["65533"] * 4
        assert not status["Groups"].strip()
        assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        environment = await asyncio.to_thread(Path(f"/proc/{process}/environ").read_bytes)
        assert {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry} <= {
            *(b"HOME", b"LANG", b"PATH", b"PWD", b"TMPDIR", b"SHLVL", b"OLDPWD", b"_")
        }


async def test_its_own_sandbox_holds_its_pages_inside_ours() -> None:
    async with _started() as (page, process):
        await page.goto("data:text/html,<p>page")
        below = [command_of(one) for one in children(process)]
        renderers = [command for command in below if "--type=renderer" in command]
        assert renderers
        assert not any("--no-sandbox" in command for command in below)


async def test_the_browser_sees_no_file_of_this_machine(secret: Path) -> None:
    async with _started() as (_, process):
        root = Path(f"/proc/{process}/root")
        for path in ("/etc/shadow", "/root", "/home", "/work", "/var/log", "/run/docker.sock", str(secret)):
            assert not (root / path.lstrip("/")).exists(), path
        assert "root" not in (root / "etc/passwd").read_text()
        assert not (root / "proc" / str(os.getpid())).exists()
        assert (root / "usr/bin").is_dir()


@pytest.mark.slow
async def test_no_address_of_a_file_shows_one(secret: Path) -> None:
    from playwright.async_api import Error

    async with _started() as (page, _):
        await page.goto("file:///etc/passwd")  # nothing forbids it here
        assert "root:" not in await page.content()
        for path in ("/etc/shadow", str(secret), "/proc/1/root/etc/shadow"):
            with pytest.raises(Error, match=r"ERR_FILE_NOT_FOUND|ERR_ACCESS_DENIED"):
                await page.goto(f"file://{path}")


_BROKEN_OUT = """
import json, os, socket, sys
given = json.loads(sys.argv[1])
def works(attempt):
    try: attempt()
    except OSError: return False
    return True
def reach(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
attempts = {
    "read": lambda: open(given["secret"]).read(),
    "shadow": lambda: open("/etc/shadow").read(),
    "write": lambda: open("/usr/planted", "w"),
    "tcp": lambda: reach(socket.AF_INET, ("127.0.0.1", given["tcp"])),
    "abstract": lambda: reach(socket.AF_UNIX, "\\0" + given["abstract"]),
    "internet": lambda: reach(socket.AF_INET, ("1.1.1.1", 53), socket.SOCK_DGRAM),
    "signal": lambda: os.kill(given["pid"], 0),
    "root": lambda: os.setuid(0),
    "own": lambda: open(given["downloads"] + "/mine", "w"),
    "proxy": lambda: reach(socket.AF_INET, ("127.0.0.1", 3128)),
}
print(json.dumps([name for name, attempt in attempts.items() if works(attempt)]))
"""


@pytest.fixture
def listeners() -> Iterator[tuple[int, str]]:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        name = f"maniple-test-{os.getpid()}-{tcp.getsockname()[1]}"
        unix.bind(f"\0{name}")
        unix.listen()
        yield tcp.getsockname()[1], name


def test_who_has_broken_out_reaches_the_guards_proxy_alone(
    tmp_path: Path, secret: Path, listeners: tuple[int, str]
) -> None:
    python = Path(shutil.which("python3", path="/usr/bin") or "")
    with socket.socket(socket.AF_UNIX) as proxy:
        proxy.bind(str(tmp_path / "proxy"))
        proxy.listen()
        folders = ChromiumFolders(tmp_path, tmp_path / "downloads", python, tmp_path / "proxy")
        argv = BubblewrapChromium(SandboxSettings()).build_argv(folders)
        given = {"secret": str(secret), "tcp": listeners[0], "abstract": listeners[1], "pid": os.getpid()}
        words = json.dumps({**given, "downloads": str(folders.downloads)})
        found = subprocess.run(
            [*argv, "-c", _BROKEN_OUT, words], capture_output=True, text=True, timeout=30, check=True
        )
    assert json.loads(found.stdout) == ["own", "proxy"]


def _folders() -> set[Path]:
    """Return the folders of the browsers that were started from here."""
    commands = " ".join(command for command in map(command_of, children()) if "bwrap" in command)
    return {Path("/tmp", name) for name in re.findall(r"/tmp/(maniple-chromium-\w+)", commands)}


async def test_the_end_of_the_browser_leaves_nothing_behind() -> None:
    of_others = _folders()
    async with _started() as (_, process):
        inside = {process, *children(process)}
        folders = _folders() - of_others
        assert inside
        assert folders
    await until(lambda: not any(map(command_of, inside)))
    assert not any(folder.exists() for folder in folders)


@pytest.mark.slow
async def test_the_end_of_its_first_process_ends_them_all() -> None:
    async with _started() as (page, process):
        inside = {process, *children(process)}
        os.kill(process, signal.SIGKILL)
        await until(lambda: not page.context.browser.is_connected())
        await until(lambda: not any(map(command_of, inside)))


async def test_without_bubblewrap_there_is_no_browser_and_the_reason(tmp_path: Path) -> None:
    isolation = BubblewrapChromium(SandboxSettings(), search_path=str(tmp_path))
    with pytest.raises(Unavailable) as refused:
        await open_browser(_SETTINGS, isolation=isolation).__aenter__()
    assert all(word in str(refused.value) for word in ("bwrap", "apt-get", "unsafe-local"))


async def test_a_bubblewrap_that_does_not_start_is_named(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    isolation = BubblewrapChromium(SandboxSettings(), search_path=f"{tmp_path}:/usr/bin:/bin")
    executable = find_executable(_SETTINGS)
    resolve = AddressGuard(FetchSettings()).resolve
    async with aclosing(Chromium(_SETTINGS, executable, resolve, isolation)) as chromium:
        with pytest.raises(BrowserError, match="create new namespace") as failed:
            await chromium.new_context()
    assert "unsafe-local" in str(failed.value)


async def test_a_window_cannot_be_isolated_and_is_refused() -> None:
    settings = BrowserSettings(headless=False, executable=find_executable(_SETTINGS))
    isolation = find_chromium_isolation(SandboxSettings())
    with pytest.raises(Unavailable, match="headless"):
        await open_browser(settings, isolation=isolation).__aenter__()


async def test_a_file_is_given_to_a_page_and_a_download_is_taken(
    guard: AddressGuard, site: Site, tmp_path: Path
) -> None:
    content = os.urandom(300_000)
    (tmp_path / "given.bin").write_bytes(content)
    (tmp_path / "given.bin").chmod(0o600)
    saved: dict[str, bytes] = {}

    async def open_file(path: str) -> Path:
        return tmp_path / path

    async def save_file(name: str, path: Path) -> str:
        saved[name] = await asyncio.to_thread(path.read_bytes)
        return name

    site.pages |= {
        "/": Reply(
            "<title>Page</title><input type=file id=f aria-label=File><a href=/file download>Get</a><p id=p>"
            "<script>f.onchange = () => p.textContent = `${f.files[0].name} ${f.files[0].size}`</script>"
        ),
        "/file": Reply(content.hex(), content_type="application/octet-stream"),
    }
    isolation = find_chromium_isolation(SandboxSettings())
    async with open_browser(_SETTINGS, guard.resolve, isolation=isolation) as browser:
        page = await browser.page("t", PageServices(open_file=open_file, save_file=save_file))
        driver = Driver(page)
        await driver.act("go_to_url", url=site.url)
        await driver.on("input_text", "File", text="given.bin")
        assert f"given.bin {len(content)}" in await driver.look()
        await driver.on("click_element", "Get")
        for _ in range(100):  # a look reports the downloads that have finished
            if saved:
                break
            await driver.look()
        await page.aclose()
    assert list(saved.values()) == [content.hex().encode()]


async def test_only_who_lets_code_run_unprotected_lets_the_browser() -> None:
    for backend in ("bubblewrap", "docker", "off"):
        assert find_chromium_isolation(SandboxSettings(backend=backend)) is not None
    assert find_chromium_isolation(SandboxSettings(backend="unsafe-local")) is None
    assert as_nobody(lambda: str(find_chromium_isolation(SandboxSettings()))) == "None"


async def test_a_link_that_poses_as_a_download_is_not_followed(tmp_path: Path, secret: Path) -> None:
    link, pipe, target = tmp_path / "link", tmp_path / "pipe", tmp_path / "folder" / "target"
    link.symlink_to(secret)
    os.mkfifo(pipe)
    for source in (link, pipe):
        with pytest.raises(OSError):
            await asyncio.to_thread(_copy_regular, source, target)
        assert not target.exists()
    await asyncio.to_thread(_copy_regular, secret, target)
    assert target.read_text() == "secret"
