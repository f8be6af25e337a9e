"""A report may cite an address that was asked for, and the one it led to."""

import pytest

from maniple.evidence import MemoryEvidence
from maniple.evidence.check import SourceCheck

pytestmark = pytest.mark.anyio


async def test_both_addresses_of_a_redirect_are_known_and_the_same_source() -> None:
    evidence = MemoryEvidence()
    await evidence.add("https://e.test/where/it/is", "A", "page", "a", asked="https://sho.rt/1")
    check = await SourceCheck.of(evidence)
    report = "See <https://sho.rt/1>, [there](http://e.test/where/it/is/) and https://sho.rt/2."
    assert [finding.citation.text for finding in await check.findings(report)] == ["https://sho.rt/2"]
    assert await check.cited("See <https://sho.rt/1>.") == await check.cited("[1]") == {1}
