"""When two spellings of a web address mean one page."""

import pytest

from maniple.evidence import comparable_url

PAGE = "https://example.com/a/page"


def same_url(left: str, right: str) -> bool:
    """Whether two addresses mean one page."""
    return comparable_url(left) == comparable_url(right)


@pytest.mark.parametrize(
    "spelling",
    [
        "http://example.com/a/page",
        "https://www.example.com/a/page",
        "https://EXAMPLE.com:443/a/page/",
        "https://example.com/a/page#part-2",
        " https://example.com./a/p%61ge ",
        "https://example.com/a/page?utm_source=x&utm_medium=y&fbclid=z",
    ],
)
def test_common_spellings_of_one_page_are_the_same(spelling: str) -> None:
    assert same_url(PAGE, spelling)


@pytest.mark.parametrize(
    "other",
    [
        "https://example.com/a/Page",
        "https://example.com/a",
        "https://example.com/a/page?id=1",
        "https://example.com:8080/a/page",
        "https://news.example.com/a/page",
        "https://example.com.evil.test/a/page",
        "ftp://example.com/a/page",
        "",
    ],
)
def test_another_page_is_not_the_same(other: str) -> None:
    assert not same_url(PAGE, other)


def test_an_address_is_the_same_in_its_written_and_its_wire_form() -> None:
    assert same_url(
        "https://zh.wikipedia.org/wiki/人工智能",
        "https://zh.wikipedia.org/wiki/%E4%BA%BA%E5%B7%A5%E6%99%BA%E8%83%BD",
    )
    assert same_url("https://bücher.example/", "https://xn--bcher-kva.example")


def test_an_encoded_separator_ends_no_part() -> None:
    assert not same_url("https://example.com/a%3Fb=1", "https://example.com/a?b=1")
    assert not same_url("https://example.com/?a=1%26b=2", "https://example.com/?a=1&b=2")


@pytest.mark.parametrize(
    "broken", ["https://[::1/x", "http://host:99999/", "not a url", "http://" + "a" * 70 + ".x/"]
)
def test_what_cannot_be_read_is_compared_as_it_is(broken: str) -> None:
    assert same_url(broken, broken)
    assert comparable_url(broken)
