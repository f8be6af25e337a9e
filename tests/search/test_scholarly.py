"""Records of papers, their markup and dates, and the pauses between requests."""

import asyncio

import pytest

from maniple.search.provider import RateLimited
from maniple.search.scholarly import (
    MAX_AUTHORS,
    PaperRecord,
    RequestQueue,
    format_date,
    markup_to_text,
    normalize_doi,
)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<jats:p>CO<jats:sub>2</jats:sub> rose.</jats:p>", "CO2 rose."),
        ("10<sup>6</sup> cells at 5&lt;6", "10^6 cells at 5<6"),
        (
            "<jats:title>Abstract</jats:title><jats:sec><jats:title>Methods:</jats:title>\n"
            "<jats:p>Two trials.</jats:p></jats:sec><jats:sec><jats:title>Results</jats:title>"
            "<jats:p>None.</jats:p></jats:sec>",
            "Methods: Two trials. Results: None.",
        ),
        ('<mml:math display="inline"><mml:mi>x</mml:mi></mml:math> and <i class="a">y</i>', "x and y"),
        ("for n<N and p>0, <x> and a <b and c> d", "for n<N and p>0, <x> and a <b and c> d"),
        (None, ""),
        (7, ""),
    ],
)
def test_markup_becomes_text_and_no_figure_changes(markup: object, text: str) -> None:
    assert markup_to_text(markup) == text


def test_markup_that_never_closes_takes_linear_time() -> None:
    assert len(markup_to_text("<p " * 100_000)) <= 40_000
    assert markup_to_text("<" * 100_000)[:3] == "<<<"


@pytest.mark.parametrize(
    ("value", "doi"),
    [
        ("https://doi.org/10.7717/PeerJ.4375", "10.7717/peerj.4375"),
        ("http://dx.doi.org/10.1000/x", "10.1000/x"),
        ("doi: 10.1000/182", "10.1000/182"),
        ("10.1002/(SICI)1097-4571(199806)49:8<693::AID>3.0.CO;2-O", None),
        ("https://evil.test/10.1000/x", ""),
        ("10.1000/x y", ""),
        (None, ""),
    ],
)
def test_a_doi_is_read_in_all_its_spellings(value: str | None, doi: str | None) -> None:
    assert normalize_doi(value) == (value.lower() if doi is None and value else doi)


def test_the_link_of_a_doi_is_shown_before_the_page_of_the_engine() -> None:
    record = PaperRecord(title="T", doi="10.1000/A<b>#1", pages=("https://engine.test/1",))
    hit = record.to_hit()
    assert hit is not None
    assert (hit.url, hit.doi) == ("https://doi.org/10.1000/a%3Cb%3E%231", "10.1000/a<b>#1")


def test_a_paper_without_an_address_is_no_hit() -> None:
    assert PaperRecord(title="T", pages=(None, "javascript:alert(1)")).to_hit() is None


def test_of_many_authors_the_number_of_the_others_is_said() -> None:
    names = [f"Author {letter}" for letter in "ABCDEFG"]
    hit = PaperRecord(title="T", authors=[*names, None], address="https://a.test/").to_hit()
    assert hit is not None
    assert hit.author == f"{', '.join(names[:MAX_AUTHORS])}, and 2 more"


@pytest.mark.parametrize(
    ("parts", "date"),
    [
        ((2020, 3, 9), "2020-03-09"),
        (("2020", "Mar", "9"), "2020-03-09"),
        (("2020", "March"), "2020-03"),
        ((2020, None, 9), "2020"),
        (("2020", "Spring"), "2020"),
        ((2020, 13), ""),
        ((None, 3), ""),
        ((20201, 3), ""),
    ],
)
def test_a_date_has_as_much_as_is_known(parts: tuple[object, ...], date: str) -> None:
    assert format_date(*parts) == date


@pytest.mark.anyio
async def test_a_request_that_would_wait_too_long_is_refused() -> None:
    queue, gate = RequestQueue("Engine", 0.01), asyncio.Event()

    async def send() -> bool:
        return await gate.wait()

    waiting = [asyncio.create_task(queue.run(send)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited, match="others wait"):
        await queue.run(send)
    gate.set()
    assert await asyncio.gather(*waiting) == [True] * 3
    assert await queue.run(send)
