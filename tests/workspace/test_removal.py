import os
import resource
from pathlib import Path

import pytest

from maniple.workspace.safe_open import remove_tree
from tests.sandbox.host import descriptors
from tests.sandbox.nobody import as_nobody, home_of_nobody, needs_root


def deepen(folder: Path, levels: int) -> None:
    """A chain of folders, each with a file beside the next."""
    directory = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
        os.mkdir("d" * 200, dir_fd=directory)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)


def test_a_tree_deeper_than_recursion_and_paths_go_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    deepen(tree, 1500)
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + 20, hard))
    try:
        remove_tree(tree)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    assert descriptors() == before


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    for place in (tree, tree / "a", tree / "a" / "b"):
        (place / "link").symlink_to(outside)
        os.mkfifo(place / "pipe")
    remove_tree(tree)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert [path.name for path in outside.iterdir()] == ["kept"]


def test_a_link_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        remove_tree(tmp_path / "tree")
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "missing")


class TestOrdinaryUser:
    pytestmark = needs_root

    @pytest.mark.parametrize("mode", [0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600])
    def test_folders_that_were_closed_are_removed(self, mode: int) -> None:
        def act() -> str:
            tree = home / "tree"
            (tree / "open" / "closed" / "inside").mkdir(parents=True)
            (tree / "open" / "closed" / "inside" / "file").touch()
            for folder in ("open/closed/inside", "open/closed", "open", "."):
                (tree / folder).chmod(mode)
            remove_tree(tree)
            return str(list(home.iterdir()))

        with home_of_nobody() as home:
            assert as_nobody(act) == "[]"
