"""The commands that every Linux machine understands, run by this one's bash."""

import base64
import subprocess
from pathlib import Path

import pytest

from maniple.sandbox.backends.remote import (
    FileStamp,
    list_files,
    print_file,
    read_listing,
    remove_files,
)

ODD = ("plain.txt", "with space", "-dash", "quote'\"$(touch x)`", "new\nline", "é/ü/ß", "~", "*")


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ODD:
        path = tmp_path / "it's" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "it's"


def test_a_listing_has_every_ordinary_file_with_any_name(folder):
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "second").hardlink_to(folder / "plain.txt")
    found = read_listing(run(list_files(str(folder), 100)))
    assert set(found) == set(ODD) - {"plain.txt"}
    assert found["with space"].size == len("with space")


def test_a_listing_ends_at_its_limit(folder):
    assert len(read_listing(run(list_files(str(folder), 3)))) == 3


@pytest.mark.parametrize("name", ODD)
def test_a_file_with_any_name_is_printed(folder, name):
    command = print_file(str(folder), name, 1000)
    assert run(command) == "+" + name


def test_a_file_is_printed_up_to_a_limit(folder):
    assert run(print_file(str(folder), "plain.txt", 4)) == "+plai"


def test_files_are_removed_and_no_others(folder):
    for command in remove_files(str(folder), [name for name in ODD if name != "plain.txt"]):
        run(command)
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["plain.txt"]


@pytest.mark.parametrize("printed", ["", "no base64!", "AAAA", base64.b64encode(b"x y z\0" * 3).decode()])
def test_a_listing_that_makes_no_sense_is_empty(printed):
    assert read_listing(printed) == {}


def test_numbers_that_no_file_has_are_cut():
    told = base64.b64encode(b"9" * 5000 + b" 1 big\0" + b"5 " + b"8" * 5000 + b" late\0").decode()
    assert read_listing(told) == {"big": FileStamp(int("9" * 18), "1"), "late": FileStamp(5, "8" * 40)}
