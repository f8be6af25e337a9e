"""Sources that are one work at several addresses."""

import pytest

from maniple.evidence import MemoryEvidence, SourceKind
from maniple.evidence.duplicates import MIN_CHARACTERS, describe_duplicates, find_doi, find_duplicates

pytestmark = pytest.mark.anyio
RELEASE = "The works of Bergheim make 4,000 kettles a day, says the company. " * 5


async def read(*pages: tuple[str, str], kind: SourceKind = "page"):
    evidence = MemoryEvidence()
    for url, text in pages:
        await evidence.add(url, "T", kind, text)
    return [(one.number, one.first, one.doi) for one in await find_duplicates(evidence)]


async def test_copies_of_a_text_name_the_first_of_them():
    copied = RELEASE.upper().replace(" ", "\n ").replace(",", "")
    pages = [("https://a.test/1", RELEASE), ("https://b.test/2", "Else. " * 80), ("https://c.test/3", copied)]
    assert await read(*pages, ("https://d.test/4", RELEASE)) == [(3, 1, ""), (4, 1, "")]


async def test_another_figure_is_another_text():
    changed = RELEASE.replace("4,000", "5,000")
    assert await read(("https://a.test/1", RELEASE), ("https://b.test/2", changed)) == []


@pytest.mark.parametrize(("length", "expected"), [(MIN_CHARACTERS, 1), (MIN_CHARACTERS - 1, 0)])
async def test_a_very_short_text_is_not_compared(length, expected):
    text = "x" * length
    assert len(await read(("https://a.test/1", text), ("https://b.test/2", text))) == expected


async def test_hits_of_a_search_are_compared_by_doi_only():
    hits = [("https://a.test/1", RELEASE), ("https://b.test/2", RELEASE)]
    assert await read(*hits, kind="result") == []
    papers = [("https://doi.org/10.1234/AB.5", "One."), ("https://b.test/doi/pdf/10.1234/ab.5", "Two.")]
    assert await read(*papers, kind="result") == [(2, 1, "10.1234/ab.5")]


@pytest.mark.parametrize(
    ("address", "doi"),
    [
        ("https://doi.org/10.1000/xyz123", "10.1000/xyz123"),
        ("https://p.test/doi/10.1000%2Fxyz123/full", "10.1000/xyz123"),
        ("https://p.test/10.1000/xyz123.pdf?x=1", "10.1000/xyz123"),
        ("https://p.test/files/10.10.2026/report", ""),
        ("https://p.test/110.1000/xyz", ""),
    ],
)
def test_a_doi_is_found_in_an_address(address, doi):
    assert find_doi([address]) == doi


async def test_the_reporter_is_told_the_numbers_of_both():
    evidence = MemoryEvidence()
    for url in ("https://a.test/1", "https://b.test/2"):
        await evidence.add(url, "T", "page", RELEASE)
    [line] = describe_duplicates(await find_duplicates(evidence))
    assert line.startswith("[2]") and "[1]" in line
