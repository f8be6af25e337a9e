"""What comes out of what model servers send: the table of `docs/models.md`.

    python -m bench.endpoints            replays all answers of tests/endpoints, and prints the table
    python -m bench.endpoints --write    also puts it into the page, between its two marks

Each answer goes through a real server of its own. The formats are replayed on loopback; no real endpoint is
called.
"""

import argparse
import asyncio
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.endpoints.raw_outputs import ROWS
from tests.endpoints.replaying import find_differences, replay
from tests.endpoints.server_framing import Kind, RawOutput

PAGE = Path(__file__).parents[1] / "docs/models.md"
BEGIN, END = "<!-- begin: bench.endpoints -->\n", "<!-- end: bench.endpoints -->\n"
_ITEM = textwrap.TextWrapper(
    120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)
FEATURES: dict[Kind, str] = {
    "refusals": "Refusals",
    "thoughts": "Thoughts",
    "calls": "Tool calls",
    "plans": "Plans",
    "frames": "Streams",
    "usage": "Usage",
}


async def find_failed() -> frozenset[str]:
    """Replay all rows; return the ids of those that do not come out as they must."""
    failed: set[str] = set()
    for row in ROWS:
        outcome, requests = await replay(row)
        if differences := find_differences(row, outcome, requests):
            failed.add(row.id)
            print(f"{row.id}: {differences}")
    return frozenset(failed)


def build_section(failed: Collection[str] = ()) -> str:
    """Return the table of servers and features, and below it each form with what happens."""
    servers = sorted({row.server for row in ROWS}, key=str.casefold)
    head = ["| Server | " + " | ".join(FEATURES.values()) + " |", "|---|" + "---|" * len(FEATURES)]
    lines = [
        f"| {server} | " + " | ".join(_cell(server, kind, failed) for kind in FEATURES) + " |"
        for server in servers
    ]
    details = [_describe(kind, failed) for kind in FEATURES]
    return "\n".join([*head, *lines, "", *details]) + "\n"


def _cell(server: str, kind: Kind, failed: Collection[str]) -> str:
    """Return how many of the forms come out as they must."""
    ids = [row.id for row in ROWS if (row.server, row.kind) == (server, kind)]
    wrong = sum(each in failed for each in ids)
    return "" if not ids else f"{len(ids) - wrong} of {len(ids)}"


def _describe(kind: Kind, failed: Collection[str]) -> str:
    return "\n".join([f"**{FEATURES[kind]}**\n", *_bullets(kind, failed), ""])


def _bullets(kind: Kind, failed: Collection[str]) -> Iterator[str]:
    """Yield one item for each outcome, with all forms that lead to it by server."""
    outcomes: dict[str, list[RawOutput]] = {}
    for row in ROWS:
        if row.kind == kind:
            outcomes.setdefault("**wrong**" if row.id in failed else row.outcome, []).append(row)
    for outcome, rows in outcomes.items():
        servers = dict.fromkeys(row.server for row in rows)
        forms = {each: "; ".join(row.form for row in rows if row.server == each) for each in servers}
        sentences = (f"{server}: {text}." for server, text in forms.items())
        yield _ITEM.fill(f"{outcome[0].upper()}{outcome[1:]}. {' '.join(sentences)}")


def replace_section(page: str, section: str) -> str:
    """Return the page with `section` between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{section}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Replay what model servers send.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/models.md")
    write = parser.parse_args().write
    section = build_section(asyncio.run(find_failed()))
    print(section)
    if write:
        PAGE.write_text(replace_section(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")


if __name__ == "__main__":
    main()
