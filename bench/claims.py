"""How many wrong claims the rules mark, and how many right ones, on labelled sets; and the time of the check.

`python -m bench.claims [FOLDER …]` measures the sets in the folders, each with its sources in
`sources/NUMBER.md` and with `claims.jsonl`. That has an object a line: `report` (Markdown that cites the
sources by number), `label` (`right` or `wrong`), `kind` (any word), and `why` (for the reader). Each claim is
judged as a report of its own. `-v` prints the mistakes. `--time` measures a report of 200 KB with 20 sources
of 100 KB.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from maniple.claims.report_check import ReportCheck
from maniple.cli.judge_eval import read_set
from maniple.evidence import MemoryEvidence
from maniple.llms.judge_measurements import describe_rate

SECONDS_AT_MOST = 4.0
"""Seconds of CPU for a long report."""
REPORT_CHARACTERS, SOURCE_CHARACTERS, SOURCES = 200_000, 100_000, 20


@dataclass(slots=True)
class ClaimScore:
    """What the rules did with the claims of a set, by label and kind."""

    total: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    marked: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    mistakes: list[str] = field(default_factory=list[str])

    def rate(self, label: str) -> tuple[int, int]:
        """Return how many claims with a label were marked, and how many there are."""
        marked, total = (
            sum(count for (one, _), count in found.items() if one == label)
            for found in (self.marked, self.total)
        )
        return marked, total


async def score(folder: Path) -> ClaimScore:
    """Judge each claim of a set alone, as a report of its own."""
    found = ClaimScore()
    texts, lines = read_set(folder)
    check = await _open_check(texts)
    for one in lines:
        check.start_report()
        findings = await check.findings(f"{one.report}\n")
        report = await check.claim_report([f"{one.report}\n"])
        label, kind = one.label, one.kind
        found.total[label, kind] += 1
        found.marked[label, kind] += bool(findings)
        found.verdicts.update((label, claim.verdict.kind) for claim in report.claims)
        if bool(findings) == (label == "right"):
            reasons = "; ".join(each.reason for each in findings)
            found.mistakes.append(f"{label:5} {kind} | {one.report} | {one.why} | {reasons}")
    return found


async def _open_check(texts: list[str]) -> ReportCheck:
    record = MemoryEvidence()
    for number, text in enumerate(texts, start=1):
        title = text.lstrip("# \n").partition("\n")[0]
        await record.add(f"https://{number}.example/", title, "page", text)
    return await ReportCheck.of(record, researched=True)


async def measure_time() -> float:
    """Return the seconds of CPU that the check of a long report takes; a third of its claims are wrong."""
    check = await _open_check([_write_source(number) for number in range(1, SOURCES + 1)])
    blocks = [*_write_report()]
    began = time.process_time()
    for block in blocks:
        await check.findings(block)
    return time.process_time() - began


def _write_source(number: int) -> str:
    lines, size = [f"# Plants of region {number}\n"], 0
    while size < SOURCE_CHARACTERS:
        plant = number * 10_000 + len(lines)
        lines.append(
            f"Plant N{plant} lies on the bank of the river, behind the old harbour and the yard. "
            f"In {1950 + plant % 70} it made {plant * 37 % 90_000 + 1_013} tonnes of steel, says the board. "
            "Its managers do not expect that to change before the new furnace is built and tested.\n"
        )
        size += len(lines[-1])
    return "\n".join(lines)


def _write_report() -> Iterator[str]:
    size = 0
    for place in range(1, REPORT_CHARACTERS):
        number = place % SOURCES + 1
        plant = number * 10_000 + place // SOURCES + 1
        tonnes = plant * 37 % 90_000 + (1_013 if place % 3 else 1_031)
        text = (
            f"In that year, plant N{plant} made {tonnes} tonnes of steel [{number}]. The managers "
            "of this plant on the bank of the river wait for the furnace, which has to be built before.\n"
        )
        size += len(text)
        if size > REPORT_CHARACTERS:
            return
        yield text


def show(found: ClaimScore, *, verbose: bool) -> None:
    """Print the rates of a set, and with `verbose` its mistakes."""
    for key in sorted(found.total):
        print(f"{key[0]:6} {key[1]:30} {found.marked[key]:4} of {found.total[key]}")
    for label in ("wrong", "right"):
        hits, total = found.rate(label)
        print(f"{label} claims marked: {describe_rate(hits, total)}")
    print("verdicts:", dict(sorted(found.verdicts.items())))
    if verbose:
        print(*found.mistakes, sep="\n")


def main() -> None:
    """Measure the sets that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--time", action="store_true")
    chosen = parser.parse_args()
    for folder in chosen.folders:
        began = time.process_time()
        found = asyncio.run(score(folder))
        print(f"== {folder.name}: {time.process_time() - began:.1f} s of CPU")
        show(found, verbose=chosen.verbose)
    if chosen.time:
        seconds = asyncio.run(measure_time())
        print(f"long report: {seconds:.1f} s of CPU, at most {SECONDS_AT_MOST:.0f}")


if __name__ == "__main__":
    main()
