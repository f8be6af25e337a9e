"""Counting where code and host are one user, and code has closed its folders."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.sandbox.watchdog import CLEANUP_FACTOR, ResourceLimits
from maniple.workspace import safe_open
from maniple.workspace.safe_open import DiskUse, measure_disk_use, open_folder
from tests.sandbox.nobody import as_nobody, home_of_nobody, needs_root

MEGABYTE = 1024**2


@pytest.fixture
def home() -> Iterator[Path]:
    with home_of_nobody() as home:
        yield home


def _made(home: Path) -> Path:
    """A tree with 2 MB and 4 entries."""
    tree = home / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    for place in ("a/big", "a/b/big"):
        (tree / place).write_bytes(bytes(MEGABYTE))
    return tree


class TestOrdinaryUser:
    pytestmark = needs_root

    @pytest.mark.parametrize("mode", [0, 0o100, 0o200, 0o300, 0o400, 0o600])
    def test_no_mode_hides_what_a_folder_holds(self, home: Path, mode: int) -> None:
        def act() -> str:
            tree = _made(home)
            for closed in (tree / "a" / "b", tree / "a", tree):
                closed.chmod(mode)
            use = measure_disk_use(tree, 10**9, 100)
            return f"{use.entries} {use.size_bytes // MEGABYTE}"

        assert as_nobody(act) == "4 2"

    def test_a_folder_that_can_be_read_keeps_its_mode(self, home: Path) -> None:
        def act() -> str:
            tree = _made(home)
            tree.chmod(0o555)
            measure_disk_use(tree, 10**9, 100)
            return oct(tree.stat().st_mode & 0o777)

        assert as_nobody(act) == "0o555"

    def test_a_folder_that_is_closed_all_the_time_is_counted_or_an_error(self, home: Path) -> None:
        def act() -> str:
            tree, over = _made(home), threading.Event()

            def close() -> None:
                while not over.is_set():  # as long as the others look
                    (tree / "a").chmod(0)

            closing = threading.Thread(target=close)
            closing.start()
            seen = set()
            for _ in range(200):
                try:
                    seen.add(measure_disk_use(tree, 10**9, 100).entries)
                except PermissionError:
                    continue
            over.set()
            closing.join()
            return str(seen - {4})

        assert as_nobody(act) == "set()"

    @pytest.mark.parametrize("module", [safe_open, safe_open])
    def test_what_cannot_be_opened_in_time_is_an_error_and_not_empty(
        self, home: Path, module: object
    ) -> None:
        def act() -> str:
            tree = _made(home)
            vars(module)["TRIES"] = 0
            measure_disk_use(tree, 10**9, 100)
            return "counted"

        assert "closed again and again" in as_nobody(act)

    def test_an_unreadable_folder_of_another_user_is_skipped(self, home: Path) -> None:
        tree = _made(home)
        for place in (tree, tree / "a"):
            os.chown(place, 65534, 65534)
        (tree / "a" / "b").chmod(0o700)
        assert as_nobody(lambda: str(measure_disk_use(tree, 10**9, 100).entries)) == "3"
        assert (tree / "a" / "b").stat().st_uid == 0

    def test_a_link_to_a_closed_folder_opens_nothing(self, home: Path) -> None:
        def act() -> str:
            outside = home / "outside"
            outside.mkdir(mode=0)
            (home / "link").symlink_to(outside)
            try:
                open_folder(home / "link")
            except NotADirectoryError:
                return oct(outside.stat().st_mode & 0o777)
            return "followed"

        assert as_nobody(act) == "0o0"


@pytest.mark.parametrize("use", [DiskUse(21 * MEGABYTE, 1, ()), DiskUse(1, 201, ())], ids=["bytes", "files"])
def test_with_a_full_quota_code_is_refused_and_the_user_asked_to_delete_files(use: DiskUse) -> None:
    limits = ResourceLimits(1, 1, disk_mb=1, files=10)
    within = limits.explain_disk_use(use, 0, (MEGABYTE, 10))
    assert "Remove what is not" in within
    assert "ask the user" not in within
    beyond = limits.explain_disk_use(use, 0, (CLEANUP_FACTOR * MEGABYTE, CLEANUP_FACTOR * 10))
    assert "20 times as much: ask" in beyond
    assert "Remove" not in beyond
