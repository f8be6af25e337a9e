"""Names that the glossary replaces, names that stand for two classes, and long lines of Markdown."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "maniple"

FORBIDDEN = {
    "Admission",
    "Aids",
    "Allowance",
    "Approved",
    "ArtifactMade",
    "Belongings",
    "BrowserSeen",
    "BrowserStepped",
    "CannotGoOn",
    "Checkpoints",
    "Clearing",
    "ContextWindow",
    "Course",
    "DiscreetTool",
    "Door",
    "Edited",
    "EndedError",
    "Equipment",
    "Exit",
    "Extracts",
    "Eyes",
    "FairSlots",
    "Fencing",
    "FileTools",
    "Film",
    "Finding",
    "Fittings",
    "Flood",
    "Forged",
    "Gallery",
    "GaveUp",
    "Harvest",
    "JsonSteps",
    "KeptResults",
    "KeptState",
    "Lane",
    "Leads",
    "LearnedCapabilities",
    "Ledger",
    "LiveLog",
    "Living",
    "Logins",
    "Look",
    "Metasearch",
    "Meter",
    "NoBrowser",
    "NotPrinted",
    "Nursery",
    "OfferedTools",
    "OneAction",
    "Pins",
    "Places",
    "Press",
    "ProgramWriter",
    "Quoted",
    "Recollection",
    "Rejected",
    "Research",
    "Rests",
    "ResultCap",
    "RunBody",
    "Said",
    "SaidView",
    "Scene",
    "Seat",
    "SecretResults",
    "Sequencer",
    "Setter",
    "Share",
    "ShortReport",
    "Sight",
    "Spending",
    "Stepping",
    "Story",
    "Stuck",
    "Tally",
    "Telling",
    "Tenure",
    "ThreadTurns",
    "Threads",
    "Told",
    "ToolCallsOnce",
    "Toolbox",
    "ToolsAtOnce",
    "Unable",
    "Unreadable",
    "Visit",
    "Watch",
    "Way",
    "WayOut",
    "Ways",
    "Wishes",
    "Wording",
    "Workplace",
    "WrittenList",
    "arrival",
    "beneath",
    "carried",
    "departure",
    "discreet",
    "disuse",
    "doors",
    "elsewhere",
    "farewell",
    "guests",
    "harvest",
    "left_behind",
    "recollection",
    "staying",
    "surgery",
    "tally",
}
"""Names of classes and modules for which the glossary has the field's own."""

# Each of these holds what is still to be done. What is done must leave it, so that it only gets shorter.
OPEN_FORBIDDEN: set[str] = set()
OPEN_DUPLICATES: set[str] = set()
MAX_COLUMNS = 120


def _modules() -> Iterator[Path]:
    yield from (path for path in SOURCE.rglob("*.py") if "assets" not in path.relative_to(SOURCE).parts)


def _classes() -> Iterator[tuple[str, str]]:
    """Yield the name of each class at the top of a module, and the module."""
    for path in _modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, str(path.relative_to(SOURCE))


def _module_names() -> Iterator[tuple[str, str]]:
    """Yield the base name of each module and package, and its path."""
    for path in _modules():
        yield path.parent.name if path.stem == "__init__" else path.stem, str(path.relative_to(SOURCE))


def test_public_classes_have_names_of_their_own() -> None:
    count = Counter(name for name, _ in _classes() if not name.startswith("_"))
    twice = {name for name, times in count.items() if times > 1}
    where = {
        name: [path for one, path in _classes() if one == name] for name in sorted(twice - OPEN_DUPLICATES)
    }
    assert where == {}, "rename all but one of each"
    assert OPEN_DUPLICATES - twice == set(), "done: take them out of OPEN_DUPLICATES"


def test_no_class_or_module_has_a_name_that_the_glossary_replaces() -> None:
    found = {(name, path) for name, path in (*_classes(), *_module_names()) if name in FORBIDDEN}
    names = {name for name, _ in found}
    assert sorted(one for one in found if one[0] not in OPEN_FORBIDDEN) == [], "use the glossary's name"
    assert OPEN_FORBIDDEN - names == set(), "done: take them out of OPEN_FORBIDDEN"


def _long_lines(page: Path) -> Iterator[int]:
    """Yield the numbers of lines that could be wrapped: rows of tables and lines of code cannot."""
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif len(line) > MAX_COLUMNS and not is_code and not line.startswith("|"):
            yield number


def test_markdown_fits_into_120_columns() -> None:
    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    long = {str(page.relative_to(ROOT)): [*_long_lines(page)] for page in pages}
    assert {page: lines for page, lines in long.items() if lines} == {}
