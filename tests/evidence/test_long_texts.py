"""Quotations are found wherever they stand in a long source."""

import pytest

from maniple.evidence import MemoryEvidence, check
from maniple.evidence.check import SourceCheck

pytestmark = pytest.mark.anyio


async def test_every_part_of_a_long_text_can_be_quoted() -> None:
    words = [f"w{number}" for number in range(30_000)]
    evidence = MemoryEvidence()
    await evidence.add("https://e.test/book", "Book", "page", " ".join(words))
    checked = await SourceCheck.of(evidence)
    for start in range(0, 30_000, 500):
        quoted = " ".join(words[start : start + 501])
        assert await checked.findings(f"It says “{quoted}” [1].") == [], start
    wrong = " ".join([*words[20_000:20_010], *words[:10]])
    assert len(await checked.findings(f"It says “{wrong}” [1].")) == 1


async def test_a_cited_source_is_always_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "MAX_SEARCHED", 10)
    evidence = MemoryEvidence()
    for name in ("tea", "coffee"):
        await evidence.add(f"https://e.test/{name}", name, "page", f"A cup of {name} costs three euros.")
    checked = await SourceCheck.of(evidence)
    coffee = "“a cup of coffee costs three euros”"
    assert len(await checked.findings(f"It says {coffee}.")) == 1, "the first source alone finds room"
    assert await checked.findings(f"It says {coffee} [2].") == []


async def test_for_an_excerpt_no_more_is_read_than_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "EXCERPT_SEARCHED", 60)
    evidence = MemoryEvidence()
    for name in ("tea", "coffee", "water"):
        await evidence.add(f"https://e.test/{name}", name, "page", f"A cup of {name} costs three euros. ")
    checked = await SourceCheck.of(evidence)
    [cited, uncited] = [
        finding.citation
        for words in ("“a mug of water costs four euros” [3].", "“a mug of water costs four euros”.")
        for finding in await checked.findings(words)
    ]
    assert await checked.texts(cited) == ["A cup of water costs three euros. "]
    assert await checked.texts(uncited) == [
        "A cup of tea costs three euros. ",
        "A cup of coffee costs three ",
    ]
