"""How many right and wrong claims in free wording are marked."""

from pathlib import Path

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).with_name("free_wording")
SOURCES = ("solar", "schools", "railway", "city")
"""The files with the sources, by their numbers from 1."""
MAX_FALSE, LEAST_FOUND = 0.03, 0.85


async def open_check() -> ReportCheck:
    evidence = MemoryEvidence()
    for name in SOURCES:
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        await evidence.add(f"https://{name}.test/", text.partition("\n")[0].lstrip("# "), "page", text)
    return await ReportCheck.of(evidence, researched=True)


async def find_marked(name: str) -> tuple[list[str], int]:
    """Return the marked claims of a file, and the number of its claims."""
    check = await open_check()
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    claims = [line.replace("\\n", "\n") for line in lines]
    return [claim for claim in claims if await check.findings(claim)], len(claims)


async def test_right_claims_are_hardly_ever_marked():
    marked, count = await find_marked("right.txt")
    assert len(marked) <= MAX_FALSE * count, marked


async def test_most_wrong_figures_units_dates_and_cells_are_marked():
    marked, count = await find_marked("wrong.txt")
    assert len(marked) >= LEAST_FOUND * count, marked
