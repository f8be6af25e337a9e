"""The list of sources: the one that a model wrote, and the one that is built from the record."""

import re
from collections.abc import Iterable

from maniple.evidence.record import Source

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^\n]*?)[ \t#]*(?:\n|$)")
_NUMBERING = re.compile(r"^(?:\d{1,3}|[ivxIVX]{1,5}|[一二三四五六七八九十]{1,3})[.)、．:：]\s*")
_ITEM = re.compile(
    r"[ \t>]*(?:[-*+][ \t]|•|\d{1,4}[.)、]|\[\^?\d{1,4}\]|【\d{1,4}】|<?https?://|[-=]{3,}\s*$)"
)
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
"""What a list of sources is called, by language; the first name is ours."""
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
    "fr": "le les des et est une dans que pour",
    "es": "el los las y es una del que para",
    "it": "il gli che è della di una sono per",
    "pt": "o os as e é uma do não para",
    "nl": "de het een en van is dat niet voor",
}


class WrittenList:
    """Takes out of a report, block by block, the list of sources that a model put into it.

    A heading or a label with such a name waits for what stands under it: where that is no list, it was a
    heading like another. The title of a report, and what it begins with, is never such a heading.
    """

    def __init__(self) -> None:
        self.heading = ""
        """What the model called it."""
        self.taken: list[str] = []
        self._name = ""
        self._level: int | None = None
        self._held: list[str] = []
        self._has_begun = False

    def feed(self, block: str) -> list[str]:
        """Return what now is known to be no part of such a list: blocks that waited, and perhaps `block`."""
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
        """Return the blocks that waited for a list: none comes."""
        back, self._held, self._level = self._held, [], None
        return back

    def _take(self, block: str) -> list[str]:
        self.taken += [*self._held, block]
        self._held, self.heading = [], self._name
        return []

    def _is_named(self, words: str) -> bool:
        name = _NUMBERING.sub("", words.strip(" *_")).strip(" *_:：")
        if name.casefold() not in _KNOWN:
            return False
        self._name = name
        return True

    def _is_label(self, block: str) -> bool:
        """Whether a paragraph is a name in a line of its own, or before a colon, and then a list."""
        first, _, rest = block.strip().partition("\n")
        name, colon, behind = first.replace("：", ":").partition(":")
        if colon and behind.strip(" *_"):
            return _URL.search(behind) is not None and (not rest or _is_list(rest)) and self._is_named(name)
        # Without any sign of a label, one word is a sentence like another.
        is_label = bool(colon) or first.startswith(("*", "_"))
        return (is_label or bool(rest)) and (not rest or _is_list(rest)) and self._is_named(first)


def _is_list(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return all(_ITEM.match(line) or _URL.search(line) or line.startswith(("  ", "\t")) for line in lines)


def source_list(sources: Iterable[Source], heading: str) -> str:
    """Return `sources` as Markdown under `heading`; "" when there are none.

    Titles are strangers' words: no mark and no address in them counts.
    """
    lines = [f"- [{one.number}] {_MARKUP.sub(_ESCAPED, _title(one))}<{_address(one)}>" for one in sources]
    return "\n".join([f"## {heading}", "", *lines]) + "\n" if lines else ""


def listed(sources: Iterable[Source]) -> str:
    """Return `sources` in plain lines, as a model is shown them."""
    return "\n".join(f"[{one.number}] {_title(one)}{_address(one)}" for one in sources)


def _title(source: Source) -> str:
    words = " ".join(re.sub("[<>]", " ", _URL.sub("", source.title[:TITLE_CHARACTERS])).split())
    return f"{words}: " if words else ""


def _address(source: Source) -> str:
    return "".join(one if one.isprintable() and one not in "<> \\" else "%20" for one in source.url)


def heading_for(text: str, locale: str = "") -> str:
    """Return the heading of the list in the language of `text`."""
    return _NAMES[language_of(text, locale)].partition(", ")[0]


def language_of(text: str, locale: str = "") -> str:
    """Return the language of `text`, such as `en`: by its letters, the locale, common words."""
    sample = text[:5_000]
    language = next(
        (name for name, letters in _SCRIPTS if len(letters.findall(sample)) > len(sample) / 20), ""
    )
    code = locale[:2].casefold()
    if not language and code in _FREQUENT:
        language = code
    return language or _spoken(sample)


def _spoken(sample: str) -> str:
    words = re.findall(r"[^\W\d_]+", sample.casefold())
    return max(_FREQUENT, key=lambda code: sum(word in _FREQUENT[code].split() for word in words))
