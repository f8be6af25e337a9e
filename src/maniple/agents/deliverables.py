"""The files that a step promises: those that its texts ask to write, and those that its answer says it wrote.

Names are found by their form, in any language: a name whose suffix is that of a known kind of file, outside
of code, addresses and paths of the machine. Words around a name say whether the file is written or read.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from maniple.agents.answer_words import CLAUSE_ENDS, FILE_ROLES, MODALITY, WRITTEN
from maniple.agents.task import PlanStepSummary, Task
from maniple.errors import FileError
from maniple.media_types import UNKNOWN, media_type_of
from maniple.scope.run_scope import thread_key
from maniple.tools.items import FileState
from maniple.types import GENERAL

MAX_FILES = 20_000
_MAX_CHARACTERS = 20_000
_MAX_NAMES = 20
_NO_FILES = frozenset({"ai", "com", "me", "ms", "t", "tr", "man", "ps"})
"""Suffixes in Python's table that are more often the end of a site's name or of an abbreviation."""
_WITHOUT_SUFFIX = frozenset(
    {"changelog", "containerfile", "dockerfile", "gemfile", "jenkinsfile", "justfile", "license", "makefile"}
    | {"procfile", "rakefile", "readme", "vagrantfile"}
)
"""Names of files that usually have no suffix; only in quotes."""
_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,}).*?(?:^[ \t>]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]，。]+|\bwww\.[^\s<>\"'`)\]]+|[\w.+-]{1,80}@[\w.-]{1,80}",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[`\"“„«'‘「《]([^`\"“”„«»'‘’「」《》\n]{1,160}?\.[A-Za-z][A-Za-z0-9]{0,9}|(?:[\w.-]{1,80}/){0,8}[A-Z][a-zA-Z]{5,14})"
    r"[`\"”“»'’」》]"
)
_BARE = re.compile(
    r"(?<![\w./\\:@~{}<>$*%-])"
    r"((?:/workspace/|\./)?(?:[\w.-]{1,80}/){0,8}[\w-][\w.-]{0,120}\.[A-Za-z][A-Za-z0-9]{0,9})"
    r"(?![A-Za-z0-9_(*{/\\@-]|\.[A-Za-z0-9])"
)
_LINK = re.compile(
    r"!?\[[^\[\]\n]{0,300}\]\(\s*<?([^()<>\n]{1,300}?)>?(?:\s+[\"'][^\"'\n]{0,200}[\"'])?\s*\)"
)
_INLINE_CODE = re.compile(r"`[^`\n]{0,200}`")
_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|[。！？；\n]")
_CONNECTION = re.compile(r"\W*(?:(?:and|or|und|sowie|et|y|e)\b|和|与|及|と)?\W*", re.IGNORECASE)
_SPOKEN_OF = ("explained", "conditional")
"""Kinds of `MODALITY` after which a task asks for no file."""
_CANNOT_WRITE = frozenset({"researcher", "browser", "reporter"})
_NO_PROMISES = frozenset({"browsing", "browser", "reporter"})
"""Members whose step may name files of others: a phase names the whole instruction, a report all results."""


def without_code(text: str) -> str:
    """Return the beginning of a text without fenced code."""
    return _FENCE.sub("\n", text[:_MAX_CHARACTERS])


def prose_of(text: str) -> str:
    """Return the beginning of a text without fenced code and without addresses."""
    return _ADDRESS.sub(" ", without_code(text))


def find_file_names(text: str) -> list[str]:
    """Return the names of files in a text, at most `_MAX_NAMES`, without those in fenced code."""
    return list(dict.fromkeys(one.name for one in _find_places(prose_of(text))))[:_MAX_NAMES]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text names a file."""

    start: int
    end: int
    name: str


def _find_places(prose: str) -> list[_Place]:
    # What is quoted is a whole name, even with blanks; its last word is no other one.
    unquoted = _QUOTED.sub(lambda found: " " * len(found[0]), prose)
    found = [*_QUOTED.finditer(prose), *_BARE.finditer(unquoted)]
    places = (_place_of(one) for one in found)
    return sorted((one for one in places if _is_file_name(one.name)), key=lambda one: one.start)


def _place_of(found: re.Match[str]) -> _Place:
    """Return a name without the words before it that Chinese and Japanese put no blank after."""
    own, start = found[1], found.start()
    words = [
        one
        for one in FILE_ROLES.finditer(own)
        # A name may begin with such a word, as one of a picture does in Chinese.
        if _CJK.match(one[0]) and (one.start() or own[one.end()].isascii())
    ]
    if words and words[-1].end() < own.rfind("."):
        own, start = own[words[-1].end() :], start + words[-1].end()
    return _Place(start, found.end(), _trim(own))


def find_files_to_write(text: str) -> list[str]:
    """Return the files that a task asks to write, without those that it reads or only speaks about."""
    found = [name for one in split_sentences(prose_of(text)) for name in _find_written_in(one)]
    return list(dict.fromkeys(found))[:_MAX_NAMES]


def find_claimed_files(answer: str, *, with_links: bool = True) -> list[str]:
    """Return the files that an answer links to, shows, or says to have written."""
    text = without_code(answer)
    targets = _LINK.findall(_INLINE_CODE.sub(" ", text)) if with_links else []
    linked = [_trim(unquote(target.strip())) for target in targets if ":" not in target]
    sentences = (
        one for one in split_sentences(_LINK.sub(" ", text)) if is_claimed(_without_names(one), WRITTEN)
    )
    said = [name for one in sentences for name in find_file_names(one)]
    return list(dict.fromkeys(name for name in [*linked, *said] if _is_file_name(name)))[:_MAX_NAMES]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, roughly."""
    return [one for one in _SENTENCE_END.split(text) if one.strip()]


def is_claimed(sentence: str, words: re.Pattern[str]) -> bool:
    """Return whether a sentence says with one of the words that something was done."""
    modalities = (one.lastgroup for one in MODALITY.finditer(sentence))
    return words.search(sentence) is not None and all(one == "relative" for one in modalities)


def _without_names(sentence: str) -> str:
    return _BARE.sub(" ", _QUOTED.sub(" ", sentence))


def _find_written_in(sentence: str) -> list[str]:
    """Return the files that a sentence of a task asks to write."""
    if any(one.lastgroup in _SPOKEN_OF for one in MODALITY.finditer(sentence)):
        return []
    places = _find_places(sentence)
    found: list[str] = []
    end, is_written = 0, False
    for at, place in enumerate(places):
        is_next = bool(at) and _CONNECTION.fullmatch(sentence[end : place.start])
        if not is_next:
            after = sentence[place.end : places[at + 1].start if at + 1 < len(places) else None]
            is_written = _is_written(sentence[: place.start], end, after, is_last=at + 1 == len(places))
        if is_written:
            found.append(place.name)
        end = place.end
    return found


def _is_written(before: str, begin: int, after: str, *, is_last: bool) -> bool:
    """Return whether the words around a name say that the file is written; those before it from `begin` on.

    In "save a.csv as b.csv", the second one is written. Some languages have the verb at the end.
    """
    roles = list(FILE_ROLES.finditer(before))
    verbs = [one for one in roles if one.lastgroup in ("write", "carry")]
    verb = verbs[-1] if verbs else None
    last = roles[-1] if roles and roles[-1].start() >= begin else None
    following = FILE_ROLES.match(after.lstrip())
    follows = following.lastgroup if following else ""
    if follows in ("target", "weak") and not is_last:
        return False
    if verb and _is_subordinate(before[: verb.start()]):
        return False
    match last.lastgroup if last else "":
        case "target" | "write":
            return True
        case "weak":
            is_place = verb is not None and not _has_relative(before[verb.start() :])
            return is_place or follows == "write"
        case "":
            is_object = verb is not None and verb.lastgroup == "write" and _is_object(before[verb.start() :])
            return is_object or follows == "write"
        case _:
            return False


def _is_object(between: str) -> bool:
    """Return whether what follows the words from a verb on is its object: no clause begins between."""
    return not _has_relative(between) and not CLAUSE_ENDS.search(between)


def _has_relative(text: str) -> bool:
    return any(one.lastgroup == "relative" for one in MODALITY.finditer(text))


def _is_subordinate(before: str) -> bool:
    clause = CLAUSE_ENDS.split(before)[-1]
    return any(one.lastgroup in ("negated", "relative") for one in MODALITY.finditer(clause))


def _trim(name: str) -> str:
    name = name.strip().removeprefix("/workspace/")
    while name.startswith("./"):
        name = name[2:]
    return name


def _is_file_name(name: str) -> bool:
    if name.startswith(("/", "~", "\\")) or "\\" in name or re.search(r"[*{}<>$|]|://", name):
        return False
    stem, _, suffix = name.rpartition("/")[2].rpartition(".")
    if suffix.casefold() in _WITHOUT_SUFFIX and not stem:
        return True
    if not stem.strip(". ") or suffix.lower() in _NO_FILES or media_type_of(name) == UNKNOWN:
        return False
    # Node.js and Vue.js are no files.
    return not (suffix == "js" and "/" not in name and stem.isalpha() and stem[0].isupper())


def is_among(name: str, paths: Iterable[str]) -> bool:
    """Return whether a file is among `paths`, in any folder and case.

    Chinese and Japanese put no blank before a name, so the file's own name may be the end of what was found.
    A name with blanks is found from its last word.
    """
    wanted = name.casefold().rpartition("/")[2]
    for path in paths:
        own = path.casefold().rpartition("/")[2]
        if own == wanted or own.endswith(f" {wanted}"):
            return True
        if wanted.endswith(own) and _CJK.match(wanted[: len(wanted) - len(own)][-1:]):
            return True
    return False


def _distinct(names: Iterable[str]) -> list[str]:
    """Return the names of different files: one without a folder may be a file that has one elsewhere."""
    distinct: list[str] = []
    for name in names:
        at = next((at for at, one in enumerate(distinct) if _may_be_same(name, one)), None)
        if at is None:
            distinct.append(name)
        else:
            distinct[at] = max(distinct[at], name, key=lambda one: one.count("/"))
    return distinct


def _may_be_same(name: str, other: str) -> bool:
    paths = [one.casefold() for one in (name, other)]
    is_inside = any(one.endswith(f"/{two}") for one, two in (paths, paths[::-1]))
    has_folders = "/" in name and "/" in other
    return paths[0] == paths[1] or is_inside or (not has_folders and is_among(name, [other]))


@dataclass(frozen=True, slots=True)
class PromisedFiles:
    """The files that a step has to write, and those of its thread before it began."""

    names: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()
    writes: bool = False
    """Whether the member has tools that write files; a link in another's answer may be a page's own."""
    stamps: frozenset[FileState] | None = None
    """The states of the files that are no mirrors, before the step; None if they were not listed."""

    async def has_new(self, task: Task) -> bool | None:
        """Return whether a file was made or changed since the step began; None if that is unknown."""
        if self.stamps is None or task.items_of_thread is None:
            return None
        return not self.stamps.issuperset(await task.items_of_thread.list_files())

    async def find_missing(self, task: Task, claimed: Collection[str] = ()) -> list[str]:
        """Return the promised and claimed files that the workspace does not have; [] without a workspace."""
        if not self.names and not claimed:
            return []
        now = await list_workspace(task)
        if now is None:
            return []
        # A file that was there and is gone was deleted or moved, as somebody wanted.
        present = [*now, *self.before, *_known(task)]
        return _distinct(name for name in [*self.names, *claimed] if not is_among(name, present))


async def promise_files(task: Task, member: str, *, writes: bool) -> PromisedFiles:
    """Return what the current step promises; call it before the step changes the workspace.

    A member promises the files that its step asks to write. The last member of the plan that `writes` files
    also promises those that the request asks for.
    """
    texts = [] if member in _NO_PROMISES else [task.title, task.description]
    if writes and not _others_may_write(task.plan, member):
        texts.append(task.request)
    names = tuple(dict.fromkeys(name for text in texts for name in find_files_to_write(text)))
    own = f"{task.title}\n{task.description}"
    is_looked_at = writes or names or find_file_names(own)
    before = await list_workspace(task) if is_looked_at else None
    stamps = await task.items_of_thread.list_files() if before is not None and task.items_of_thread else None
    return PromisedFiles(names, frozenset(before or ()), writes, stamps)


def _others_may_write(plan: Sequence[PlanStepSummary], member: str) -> bool:
    """Return whether a later step of the plan may still write a file."""
    own = next((one.step for one in plan if one.is_own), None)
    if own is None or (member == GENERAL and len(plan) <= 1):
        return False
    open_statuses = ("not_started", "in_progress")
    return any(
        one.step > own and one.agent not in _CANNOT_WRITE and one.status in open_statuses for one in plan
    )


async def list_workspace(task: Task) -> Collection[str] | None:
    """Return the paths of the files in the current thread's workspace; None if it cannot be read."""
    if task.items_of_thread is None:
        return None
    workspaces = task.items_of_thread.workspaces
    try:
        listing = await asyncio.to_thread(workspaces.files, thread_key(), MAX_FILES)
    except (FileError, OSError):
        return None
    return None if len(listing.found) >= MAX_FILES else [path for path, _ in listing.found]


def _known(task: Task) -> list[str]:
    """Return the paths that the task itself names as there: items, results, and the last report."""
    given = [*(one.path for one in task.items), *(one.path for one in task.results), *task.pictures]
    return [path for path in [*given, task.history.report_path] if path]
