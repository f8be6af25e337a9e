"""What code plants in its workspace, and then the host reads, lists, writes, keeps and removes."""

from pathlib import Path

import pytest

from maniple.errors import FileError
from maniple.sandbox import Sandbox
from maniple.workspace import Workspace, Workspaces
from tests.sandbox.host import descriptors

pytestmark = pytest.mark.anyio

PLANT = """
import os, socket
os.symlink({secret!r}, "link")
os.symlink({folder!r}, "folder-link")
os.symlink("/proc/self/root", "root-link")
os.symlink("link-to-itself", "link-to-itself")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
open("own", "w").write("own")
os.link("own", "own-again")
for name in ("/usr/bin/env", "/etc/mime.types", "/dev/null", "/dev/zero", "/proc/self/status"):
    try:
        os.link(name, "linked-" + os.path.basename(name))
    except OSError:
        continue
"""
NAMES = """
import os
made = []
for name in ("..", ".", "", "a" * 256, "zero\\0", "a/b/c"):
    try:
        open(name, "x").close()
        made.append(name)
    except (OSError, ValueError):
        continue
for name in ("new\\nline", " ", "-rf", "~", "a" * 255, "汉" * 85):
    open(name, "x").close()
for name in ("\\u202egnp.exe", "\\x1b[31m", "<script>", "%2e%2e"):
    open(name, "x").close()
for name in (b"not-utf8-\\xff", b"\\xc0\\xae\\xc0\\xae"):
    open(name, "x").close()
made
"""
DEEP = """
import os
for _ in range(3000):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("bottom", "w").close()
"""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder / "secret"


async def _planted(sandbox: Sandbox, workspace: Workspace, code: str) -> str:
    completed = await sandbox.run_python(code, key="thread", workspace=workspace)
    assert completed.exit_code == 0, completed.text()
    return completed.value


async def test_nothing_planted_leads_the_host_out_of_the_workspace(
    narrow: Sandbox, workspace: Workspace, secret: Path
) -> None:
    await _planted(narrow, workspace, PLANT.format(secret=str(secret), folder=str(secret.parent)))
    planted = _entries(workspace.path)
    assert {"link", "folder-link", "pipe", "socket", "own", "own-again"} <= planted
    before = descriptors()
    # The only names that are read are of files that have one name, and were made inside.
    for name in (*planted, "folder-link/secret", "root-link/etc/passwd", "link-to-itself/x", "pipe/x"):
        with pytest.raises(FileError):
            workspace.read(name, 100)
    for path in ("folder-link/new", "root-link/tmp/new", "link/new", "pipe/new"):
        with pytest.raises(FileError):
            workspace.write(path, b"x")
    assert {path for path, _ in workspace.files(100)} <= {"own", "own-again"}
    assert descriptors() == before
    assert _entries(secret.parent) == {"secret"}
    assert _text(secret) == "secret"


async def test_writing_replaces_what_was_planted_and_not_what_it_leads_to(
    narrow: Sandbox, workspace: Workspace, secret: Path
) -> None:
    await _planted(narrow, workspace, PLANT.format(secret=str(secret), folder=str(secret.parent)))
    for name in ("link", "folder-link", "pipe", "socket"):
        workspace.write(name, b"new")
        assert workspace.read(name, 10).content == b"new"
    assert _text(secret) == "secret"


async def test_names_that_mean_something_elsewhere_are_only_names(
    narrow: Sandbox, workspace: Workspace
) -> None:
    assert await _planted(narrow, workspace, NAMES) == "[]"
    found = workspace.files(100)
    assert "new\nline" in {path for path, _ in found}
    assert "a" * 255 in {path for path, _ in found}
    for path, _ in found:
        # As UTF-8 whatever the bytes were: a client is told of it in JSON.
        path.encode(errors="surrogateescape")
    for path in ("..", "../x", "a\0b", "/etc/passwd", "new\nline/../../x"):
        with pytest.raises(FileError):
            workspace.read(path, 10)


async def test_a_tree_deeper_than_any_path_is_listed_and_removed(
    narrow: Sandbox, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.write("notes.txt", b"kept")
    await narrow.run_python(DEEP, key="thread", workspace=workspace)
    assert workspace.files(100) == [("notes.txt", 4)]
    await narrow.stop("thread")
    Workspaces(tmp_path / "workspaces").remove("thread")
    assert "thread" not in _entries(tmp_path / "workspaces")


async def test_links_that_are_swapped_while_the_host_looks(
    narrow: Sandbox, workspace: Workspace, secret: Path
) -> None:
    code = f"""
import os, threading
os.mkdir("real")
open("real/secret", "w").write("inside")
os.symlink({str(secret.parent)!r}, "lure")
def swap():
    while True:
        for source in ("real", "lure"):
            try:
                os.rename(source, "swapped")
                os.rename("swapped", source)
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
"""
    await _planted(narrow, workspace, code)
    read = set()
    for _ in range(2000):
        try:
            read.add(workspace.read("swapped/secret", 100).content)
            workspace.write("swapped/new", b"x")
        except FileError:
            continue
    assert read <= {b"inside"}
    assert _entries(secret.parent) == {"secret"}


def _entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _text(file: Path) -> str:
    return file.read_text()
