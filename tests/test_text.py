"""Texts that are shortened for titles and lists."""

import random
import tracemalloc

import pytest

from maniple.text import file_size, format_host, join_title, shorten, shorten_words


def test_a_text_becomes_one_line_that_ends_with_an_ellipsis_where_it_is_cut():
    chance = random.Random(7)
    for _ in range(2_000):
        text = "".join(chance.choice("ab \n") for _ in range(chance.randrange(12)))
        limit = chance.randrange(1, 8)
        whole = " ".join(text.split())
        assert shorten(text, limit) == (whole if len(whole) <= limit else f"{whole[: limit - 1]}…")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("one two six", "one two six"),
        ("one two three four", "one two…"),
        ("one two thr four", "one two thr…"),
        ("a verylongwordindeed", "a verylongw…"),
        ("verylongwordindeed", "verylongwor…"),
        ("one two thre", "one two thre"),
    ],
)
def test_a_title_is_cut_after_a_whole_word_where_enough_is_left(text, title):
    assert shorten_words(text, 12) == title


def test_a_text_of_megabytes_is_not_split_as_a_whole():
    text = "word é " * 500_000
    tracemalloc.start()
    try:
        assert len(shorten(text, 80)) == 80
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(text)


def test_a_size_is_written_in_the_unit_of_its_magnitude():
    written = {
        0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1_000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB",
        25_000_000: "25.0 MB", 999_999_999: "1.0 GB", 3_210_000_000: "3.2 GB",
        5_000_000_000_000: "5,000.0 GB",
    }  # fmt: skip
    assert {size: file_size(size) for size in written} == written


@pytest.mark.parametrize(
    ("title", "text"),
    [("Add 1 and 3", "Add 1 and 3"), ("add 1 and 3:", "Add 1\nand 3."), ("Add 1 a…", "Add 1 and 3 here")],
)
def test_a_title_that_only_repeats_its_text_is_left_out(title, text):
    assert join_title(title, text) == text


@pytest.mark.parametrize(("title", "text"), [("Add", "Add 1 and 3"), ("Add 1 and 3", "Add 3"), ("Sum", "")])
def test_a_title_with_a_text_of_its_own_stays_above_it(title, text):
    assert join_title(title, text).splitlines() == [title, *text.splitlines()]


@pytest.mark.parametrize(
    ("host", "shown"), [("::1", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("a.example", "a.example")]
)
def test_only_an_ipv6_address_stands_in_brackets(host, shown):
    assert format_host(host) == shown
