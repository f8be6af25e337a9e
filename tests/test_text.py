"""Texts that are shortened for titles and lists."""

import random
import tracemalloc

from maniple.text import shorten


def test_a_text_becomes_one_line_that_ends_with_an_ellipsis_where_it_is_cut():
    chance = random.Random(7)
    for _ in range(2_000):
        text = "".join(chance.choice("ab \n") for _ in range(chance.randrange(12)))
        limit = chance.randrange(1, 8)
        whole = " ".join(text.split())
        assert shorten(text, limit) == (whole if len(whole) <= limit else f"{whole[: limit - 1]}…")


def test_a_text_of_megabytes_is_not_split_as_a_whole():
    text = "word é " * 500_000
    tracemalloc.start()
    try:
        assert len(shorten(text, 80)) == 80
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(text)
