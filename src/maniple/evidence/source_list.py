"""The list of sources of a report: finds the one that a model wrote, and formats the one from the record."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.record import Source

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^\n]*?)[ \t#]*(?:\n|$)")
_NUMBERING = re.compile(r"^(?:\d{1,3}|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})[.)、．:：]\s*")
_ITEM = re.compile(
    r"[ \t>]*(?:[-*+][ \t]|•|\d{1,4}[.)、]|\[\^?\d{1,4}\]|【\d{1,4}】|<?https?://|[-=]{3,}\s*$)"
)
_FOOTNOTE = re.compile(r"^ {0,3}\[\^[^\]\s]{1,100}\]:", re.MULTILINE)
_URL = re.compile(r"https?://\S+|www\.\S+", re.IGNORECASE)
_ESCAPED = r"\\\1"
_MARKUP = re.compile(r"([\\`*_\[\]|~])")
TITLE_CHARACTERS = 200

_NAMES: dict[str, str] = {
    "en": "Sources, References, Bibliography, List of sources, Citations, Works cited, Source list",
    "zh": "来源, 参考来源, 参考文献, 参考资料, 资料来源, 信息来源, 引用来源, 引用, 來源, 參考資料",
    "ja": "出典, 参考文献, 情報源, 参考, 参考リンク",
    "ko": "출처, 참고문헌, 참고 문헌, 참고 자료",
    "ru": "Источники, Список источников, Литература, Список литературы, Ссылки",
    "de": "Quellen, Quellenverzeichnis, Quellenangaben, Literatur, Literaturverzeichnis",
    "fr": "Sources, Références, Bibliographie",
    "es": "Fuentes, Referencias, Bibliografía",
    "it": "Fonti, Riferimenti, Bibliografia",
    "pt": "Fontes, Referências, Bibliografia",
    "nl": "Bronnen, Bronvermelding, Referenties",
}
"""Headings of lists of sources by language. The first one is the heading that the team writes."""
_KNOWN = frozenset(name.casefold() for names in _NAMES.values() for name in names.split(", "))
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
_FREQUENT = {
    "en": "the of and is are that with was for",
    "de": "der die und ist das nicht mit den für",
    "fr": "le les des et est une dans que pour de en",
    "es": "el los las y es una del que para de en",
    "it": "il gli che è della di una sono per",
    "pt": "o os as e é uma do não para de",
    "nl": "de het een en van is dat niet voor",
}
_FREQUENT_WORDS = {code: frozenset(words.split()) for code, words in _FREQUENT.items()}
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE_CHARACTERS = 5_000
_CLEAR_WORDS = 3
"""The number of different frequent words that identifies a language, if it also has the most matches."""


class ModelSourceList:
    """Removes from a report, block by block, the list of sources that a model wrote.

    A heading or label with the name of such a list is held back until the next block is known. If that is not
    a list, both are returned. The first block of a report is never such a heading. Definitions of footnotes
    stay: the text refers to them.
    """

    def __init__(self) -> None:
        self.heading = ""
        """The heading of the removed list."""
        self.taken: list[str] = []
        self._name = ""
        self._level: int | None = None
        self._held: list[str] = []
        self._has_begun = False

    def feed(self, block: str) -> list[str]:
        """Return the blocks that are known not to be part of such a list: held ones, and perhaps `block`."""
        is_first, self._has_begun = not self._has_begun, True
        heading = _HEADING.match(block)
        if heading is None and self._level is not None and _is_list(block):
            return self._take(block)
        if heading is not None and self._level and len(heading[1]) > self._level:
            self._held.append(block)
            return []
        back = self.end()
        if is_first:
            return [block]
        if heading is not None:
            self._level = len(heading[1]) if len(heading[1]) > 1 and self._is_named(heading[2]) else None
        elif self._is_label(block):
            self._level = 0
        if self._level is None:
            return [*back, block]
        if heading is None and ("\n" in block.strip() or _URL.search(block)):
            return back + self._take(block)
        self._held.append(block)
        return back

    def end(self) -> list[str]:
        """Return the blocks that are still held back."""
        back, self._held, self._level = self._held, [], None
        return back

    def _take(self, block: str) -> list[str]:
        stays = _FOOTNOTE.search(block) is not None
        self.taken += self._held if stays else [*self._held, block]
        self._held, self.heading = [], self._name
        return [block] if stays else []

    def _is_named(self, words: str) -> bool:
        if not is_source_heading(words):
            return False
        self._name = _heading_name(words)
        return True

    def _is_label(self, block: str) -> bool:
        """Whether a paragraph is such a name, on its own line or before a colon, and at most a list."""
        first, _, rest = block.strip().partition("\n")
        name, colon, behind = first.replace("：", ":").partition(":")
        if colon and behind.strip(" *_"):
            return _URL.search(behind) is not None and (not rest or _is_list(rest)) and self._is_named(name)
        # Without a colon, emphasis or list, a single word is ordinary text.
        is_label = bool(colon) or first.startswith(("*", "_"))
        return (is_label or bool(rest)) and (not rest or _is_list(rest)) and self._is_named(first)


def is_source_heading(words: str) -> bool:
    """Whether the text of a heading, perhaps with its number, is the name of a list of sources."""
    return _heading_name(words).casefold() in _KNOWN


def _heading_name(words: str) -> str:
    return _NUMBERING.sub("", words.strip(" *_")).strip(" *_:：")


def _is_list(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return all(_ITEM.match(line) or _URL.search(line) or line.startswith(("  ", "\t")) for line in lines)


def format_source_list(sources: Iterable[Source], heading: str) -> str:
    """Return `sources` as Markdown under `heading`; "" when there are none.

    Titles are untrusted: Markdown in them is escaped, and addresses are removed.
    """
    lines = [f"- [{one.number}] {_MARKUP.sub(_ESCAPED, _title(one))}<{_address(one)}>" for one in sources]
    return "\n".join([f"## {heading}", "", *lines]) + "\n" if lines else ""


def format_sources(sources: Iterable[Source]) -> str:
    """Return `sources` as plain lines for a prompt."""
    return "\n".join(f"[{one.number}] {_title(one)}{_address(one)}" for one in sources)


def _title(source: Source) -> str:
    title = _plain(source.title)
    publisher = _plain(source.publisher)
    is_new = publisher.casefold() not in title.casefold()
    words = ", ".join(filter(None, (title, publisher if is_new else "", _plain(source.published))))
    return f"{words}: " if words else ""


def _plain(text: str) -> str:
    """Return untrusted text without addresses and angle brackets."""
    return " ".join(re.sub("[<>]", " ", _URL.sub("", text[:TITLE_CHARACTERS])).split())


def _address(source: Source) -> str:
    # An earlier version stored addresses with their secrets.
    url = hide_secrets(source.url)
    return "".join(one if one.isprintable() and one not in "<> \\" else "%20" for one in url)


def heading_for(text: str, locale: str = "") -> str:
    """Return the heading of the list in the language of `text`; for a short text, `locale` decides."""
    return _NAMES[language_of(text, locale)].partition(", ")[0]


def language_of(text: str, locale: str = "") -> str:
    """Return the language of `text`, such as `en`, by its script, its frequent words, and then `locale`.

    `locale` is that of the request, which may ask for a report in another language.
    """
    code = locale[:2].casefold()
    found = _detect(text)
    # Text in Latin letters is in none of the languages with their own scripts.
    is_possible = code in _FREQUENT or (code in _NAMES and not _WORD.search(text[:_SAMPLE_CHARACTERS]))
    return code if is_possible and not found.is_clear else found.language


def detect_language(text: str) -> str:
    """Return the language of `text`, such as `en`; "" if its words do not tell."""
    found = _detect(text)
    return found.language if found.is_clear or found.leads else ""


@dataclass(frozen=True, slots=True)
class _DetectedLanguage:
    language: str
    is_clear: bool = True
    leads: bool = True
    """Whether more words are of this language than of any other."""


def _detect(text: str) -> _DetectedLanguage:
    sample = text[:_SAMPLE_CHARACTERS]
    for name, letters in _SCRIPTS:
        if len(letters.findall(sample)) > len(sample) / 20:
            return _DetectedLanguage(name)
    words = _WORD.findall(sample.casefold())
    counts = {code: sum(map(frequent.__contains__, words)) for code, frequent in _FREQUENT_WORDS.items()}
    first, second = sorted(counts, key=lambda code: -counts[code])[:2]
    leads = counts[first] > counts[second]
    found = _FREQUENT_WORDS[first].intersection(words)
    return _DetectedLanguage(first, leads and len(found) >= _CLEAR_WORDS, leads)
