"""What a block quote says somebody said, and what in it is only the writer's."""

import re
from collections.abc import Iterator

from maniple.evidence.citation import Citation
from maniple.evidence.links import without_addresses
from maniple.evidence.prose import Prose
from maniple.evidence.quotations import untagged
from maniple.evidence.wording import LEAST_WORDS_CITED, words_in

_PREFIX = re.compile(r"\A[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,20}(?:>[ \t]*)+")
_BULLET = re.compile(r"\A[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_BYLINE = re.compile(
    r"[*_]{0,2}(?:[—–―-]{1,3}|~) ?[^\s—–-]|[(（][^\n]*[)）]$|<cite\b"
    r"|[*_]{0,2}(?:sources?|quelle|fuente|fonte|来源|出处|出典|출처)[*_]{0,2} ?[:：]",
    re.IGNORECASE,
)
_BYLINE_BEHIND = re.compile(
    r"(?<=[.!?。！？”“»«」』’\"\])*_])[ \t]{0,4}[*_]{0,2}(?:[—–―]{1,2}|---?)[ \t]?[^\n]{1,400}$"
    r"|(?<=[”“»«」』’\"\]])[ \t]{0,4}[(（][^\n]{1,400}[)）]$"
)
_MOST_BYLINE_WORDS = 15
_LINK_TARGET = re.compile(r"\]\([^()\n]{0,400}\)")
_CALLOUTS = (
    "note|tip|info|hint|important|warning|caution|attention|remark|reminder|abstract|summary|tl;?dr|todo|"
    "danger|bug|example|definition|takeaways?|key (?:takeaways?|points?|insights?|findings?)|conclusion|"
    "bottom line|in short|in brief|verdict|disclaimer|limits?|limitations?|"
    "hinweis|achtung|wichtig|fazit|kernaussage|zusammenfassung|merke|beispiel|"
    "remarque|résumé|à retenir|en bref|exemple|nota bene|nota|aviso|resumen|conclusión|ejemplo|importante|"
    "advertencia|riassunto|conclusione|resumo|conclusão|"
    "примечание|важно|вывод|итог|внимание|ملاحظة|الخلاصة|خلاصة|تنبيه|"
    "注意?|提示|说明|警告|重要|总结|结论|要点|核心观点|核心结论|摘要|備考|補足|まとめ|結論|ポイント|참고|주의|요약|결론"
)
_CALLOUT = re.compile(
    rf"\[!(?!quote|cite)\w+\]|\W{{0,6}}(?:{_CALLOUTS})[*_]{{0,3}} ?[:：]"
    rf"|\*\*\W{{0,6}}(?:{_CALLOUTS})[.!。]?\*\*",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\A(?:\[!\w+\]|\*\*[^*\n]{1,60}(?:[:：]\*\*|\*\*[:：]))")


def blockquotes(prose: Prose) -> Iterator[Citation]:
    """Yield the words of block quotes, but for callouts (`> **Note:** …`), speakers and bylines."""
    for start, end in prose.quotes:
        lines = [_PREFIX.sub("", line, count=1).strip() for line in prose.shown[start:end].split("\n")]
        words = _words(lines)
        if not _CALLOUT.match(words):
            words = untagged(_SPEAKER.sub("", words, count=1))
            if words_in(without_addresses(words)) >= LEAST_WORDS_CITED:
                yield Citation("quotation", start, start + len(prose.shown[start:end].rstrip()), words)


def _words(lines: list[str]) -> str:
    while lines and (not lines[-1] or (_is_byline(lines[-1]) and _says_something(lines[:-1]))):
        lines.pop()
    text = "\n".join(_BULLET.sub("", line, count=1) for line in lines).strip()
    behind = _BYLINE_BEHIND.search(text)
    return text[: behind.start()] if behind and _is_byline(behind[0].strip()) else text


def _is_byline(line: str) -> bool:
    words = without_addresses(_LINK_TARGET.sub("]", line))
    return _BYLINE.match(line) is not None and words_in(words) <= _MOST_BYLINE_WORDS


def _says_something(lines: list[str]) -> bool:
    """Whether there are words beside what looks like a byline, as the items of a list do."""
    return any(words_in(line) > 0 and not _BYLINE.match(line) for line in lines)
