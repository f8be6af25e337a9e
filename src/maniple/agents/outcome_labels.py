"""The labels with which members say the outcome of a step, in the forms that models give them.

The prompt names `STEP FAILED:`, `PARTIAL:`, `MISSING:` and `NEEDS:`. Models translate them and use near
synonyms. A form counts only as a label: at the beginning of a line, before a colon or a dash or alone in it.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from maniple.agents.answer_words import NEED, OWN_NEED
from maniple.agents.task import MISSING_IN_IT, NEEDED_FOR_IT

LabelName = Literal["failed", "partial", "missing", "needs"]

CODE_FENCE = re.compile(r"[ \t>]{0,6}(`{3,}|~{3,})")
_FENCE_LENGTH = 3

_OWN: Mapping[LabelName, Mapping[str, str]] = {
    "failed": {
        "en": "step failed",
        "de": "schritt fehlgeschlagen, schritt gescheitert, schritt nicht möglich",
        "fr": "échec de l'étape, étape échouée, étape en échec, l'étape a échoué",
        "es": "paso fallido, el paso falló, el paso ha fallado, fallo del paso",
        "it": "passaggio fallito, passo fallito, fase fallita",
        "pt": "etapa falhou, a etapa falhou, passo falhou, falha na etapa, falha da etapa",
        "nl": "stap mislukt",
        "ru": "шаг не выполнен, шаг провален, шаг не удался, ошибка шага",
        "zh": "步骤失败, 步驟失敗, 步骤执行失败, 此步骤失败",
        "ja": "ステップ失敗, 手順失敗, ステップに失敗, ステップ失敗しました",
        "ko": "단계 실패",
    },
    "partial": {
        "en": "step partial, partially done, partially complete, partially completed, partially finished"
        ", partly done, partly complete, partly completed, partly finished, only partly done"
        ", only partially done, done in part, completed in part, partial result, partial answer"
        ", incomplete result, incomplete answer",
        "de": "teilweise erledigt, teilweise abgeschlossen, teilweise fertig, nur teilweise erledigt"
        ", zum teil erledigt, schritt teilweise erledigt, teilergebnis, unvollständiges ergebnis",
        "fr": "partiellement terminé, partiellement terminée, partiellement fait, partiellement accompli"
        ", terminé en partie, fait en partie, étape partielle, résultat partiel, réponse partielle"
        ", résultat incomplet",
        "es": "parcialmente hecho, parcialmente completado, parcialmente completo, parcialmente terminado"
        ", hecho en parte, paso parcial, resultado parcial, respuesta parcial, resultado incompleto",
        "it": "parzialmente completato, parzialmente fatto, completato in parte, fatto in parte"
        ", risultato parziale, risposta parziale, risultato incompleto",
        "pt": "parcialmente concluído, parcialmente concluída, parcialmente feito, concluído em parte"
        ", feito em parte, resultado parcial, resposta parcial, resultado incompleto",
        "nl": "gedeeltelijk klaar, gedeeltelijk gedaan, gedeeltelijk voltooid, deels klaar, deels gedaan"
        ", gedeeltelijk resultaat",
        "ru": "частично выполнено, частично сделано, частично готово, выполнено частично, сделано частично"
        ", частичный результат",
        "zh": "部分完成, 仅部分完成, 部分成功, 部分结果, 未全部完成, 未完全完成",
        "ja": "一部完了, 部分完了, 部分的に完了, 一部のみ完了, 部分的な結果",
        "ko": "일부 완료, 부분 완료, 일부만 완료, 부분 결과",
    },
    "missing": {
        "en": "still missing, missing still, what is missing, what's missing, what is still missing"
        ", what's still missing, not done, not yet done, left undone, still to do, still to be done"
        ", could not find, could not get, could not do, not obtained",
        "de": "es fehlt, es fehlt noch, es fehlen, es fehlen noch, noch fehlend, fehlt noch, fehlen noch"
        ", was fehlt, was noch fehlt, nicht erledigt, noch nicht erledigt, noch offen",
        "fr": "il manque, il manque encore, manque encore, ce qui manque, ce qu'il manque, reste à faire"
        ", encore manquant, non fait, pas fait",
        "es": "aún falta, aún faltan, todavía falta, todavía faltan, lo que falta, falta aún"
        ", falta todavía, sin hacer, no hecho",
        "it": "manca ancora, mancano ancora, ancora mancante, cosa manca, che cosa manca"
        ", non fatto, ancora da fare",
        "pt": "ainda falta, ainda faltam, o que falta, não feito, por fazer",
        "nl": "ontbreekt nog, nog ontbrekend, wat ontbreekt, wat nog ontbreekt, niet gedaan, nog niet gedaan",
        "ru": "не хватает, ещё не хватает, чего не хватает, не сделано, ещё не сделано, осталось сделать",
        "zh": "仍缺, 仍缺少, 仍然缺少, 还缺, 还缺少, 尚缺, 尚缺少, 尚未完成, 未完成部分, 未完成的部分"
        ", 缺少的内容, 缺失内容, 仍未完成, 未能完成, 未能获取, 還缺",
        "ja": "まだ不足, まだ不足しているもの, 不足しているもの, 足りないもの, 未取得, 未実施",
        "ko": "아직 없음, 아직 부족, 부족한 것, 누락된 것, 아직 안 됨",
    },
    "needs": {
        "en": "what would help, would help, what is needed, what I need, what I would need",
        "de": "was helfen würde, was hilft, hilfreich wäre, was ich brauche, wird benötigt",
        "fr": "ce qui aiderait, ce dont j'ai besoin, ce qu'il faut",
        "es": "lo que ayudaría, lo que necesito, se necesita",
        "it": "cosa aiuterebbe, che cosa aiuterebbe, cosa mi serve, di cosa ho bisogno",
        "pt": "o que ajudaria, o que preciso",
        "nl": "wat zou helpen, wat ik nodig heb",
        "ru": "что поможет, что помогло бы, что нужно, мне нужно",
        "zh": "需要什么, 所需帮助, 所需, 还需要, 仍需要, 仍需",
        "ja": "必要なもの, あると助かるもの",
        "ko": "필요한 것, 도움이 될 것",
    },
}
"""Forms by language that say by themselves that they are about the step."""

_PLAIN: Mapping[LabelName, Mapping[str, str]] = {
    "failed": {},
    "partial": {
        "en": "partial, partially, partly, incomplete, not complete, unfinished",
        "de": "teilweise, zum teil, partiell, unvollständig, nicht vollständig, unfertig",
        "fr": "partiel, partielle, partiellement, incomplet, incomplète, en partie",
        "es": "parcial, parcialmente, incompleto, incompleta, en parte",
        "it": "parziale, parzialmente, incompleto, incompleta, in parte",
        "pt": "parcial, parcialmente, incompleto, incompleta, em parte",
        "nl": "gedeeltelijk, deels, onvolledig, partieel",
        "ru": "частично, неполно, не полностью, не завершено",
        "zh": "部分, 不完整, 未完成, 不完全",
        "ja": "部分的, 一部, 不完全, 未完了",
        "ko": "부분, 부분적, 불완전, 미완료",
    },
    "missing": {
        "en": "missing, lacking",
        "de": "fehlt, fehlen, fehlend, fehlendes",
        "fr": "manque, manquent, manquant, manquants, manquante",
        "es": "falta, faltan, faltante, faltantes, pendiente",
        "it": "manca, mancano, mancante, mancanti",
        "pt": "falta, faltam, em falta, faltando, pendente",
        "nl": "ontbreekt, ontbrekend",
        "ru": "отсутствует, недостаёт, нет",
        "zh": "缺失, 缺少, 缺",
        "ja": "不足, 欠落",
        "ko": "누락, 부족",
    },
    "needs": {
        "en": "need, needs, needed",
        "de": "benötigt, brauche, bedarf",
        "fr": "besoin, besoins, nécessaire",
        "es": "necesita, necesito, necesidades",
        "it": "serve, servono, bisogno",
        "pt": "precisa, preciso, necessidades",
        "nl": "nodig",
        "ru": "нужно, нужны, требуется",
        "zh": "需要, 需求",
        "ja": "必要",
        "ko": "필요",
    },
}
"""Forms that also speak of a subject, such as what an archive lacks."""
ABOUT_ANOTHER_STEP = "the step '"
"""Follows `MISSING:` in a line about another step, which a member quotes."""
MARKS = r"[ \t>|*#_`~+•\u2190-\u2bff\ufe0f\U0001f000-\U0001faff-]{0,20}(?:\d{1,2}[.)][ \t*_`]{0,10})?"
_STATUS = r"(?:STATUS[*_`]{0,3}[:=][ \t*_`]{0,5})?"
_SPACE = r"[ \t\u00a0\u202f*_`]{0,10}"
_ASIDE = r"[ \t]{0,5}[(（](?P<aside>[^()（）\n]{0,200})[)）]"
_ASIDE_BEGUN = r"[ \t]{0,5}(?:[(（][^()（）\n]{0,200}[)）]?)?"
_SEPARATOR = rf"(?:{_SPACE}(?:[:：|]|[-–—=](?=\s|$))|(?<=\.)[*_`]{{0,3}}[ \t])"
_AROUND = " \t\u00a0\u202f*_`|"
_NOTHING_CHARACTERS = 40
NOTHING = re.compile(
    r"(?:(?:none|nothing|no|n/?a|null|nil|keine?s?|nichts|rien|aucune?|nada|ningun[oa]|niente|nulla"
    r"|nessun[oa]?|niets|geen|нет|ничего)"
    r"(?: (?:is|was|ist|war|ne|non|falta|manca|manque|missing|lacking|else|more|left|needed|fehlt|weiter"
    r"|weiteres|d'autre|altro|más|mehr|to add|to report)){0,3}"
    r"|es fehlt nichts|无|没有|沒有|なし|ありません|없음|没有缺失|无缺失)?[\s.!。-]*",
    re.IGNORECASE,
)


def _key(text: str) -> str:
    """Return a text without case and accents, for a comparison with forms."""
    plain = text.casefold().replace("_", " ").replace("’", "'")
    return "".join(one for one in unicodedata.normalize("NFD", plain) if not unicodedata.combining(one))


def _read_forms(forms: Mapping[LabelName, Mapping[str, str]]) -> dict[str, LabelName]:
    return {
        form: name
        for name, by_language in forms.items()
        for texts in by_language.values()
        for form in texts.split(", ")
    }


def _pattern(form: str) -> str:
    """Return a pattern of a form, which matches without accents, too."""
    return "".join(_character_pattern(one) for one in form)


def _character_pattern(character: str) -> str:
    if character in " '":
        return "[ _]" if character == " " else "['’]"
    base = _key(character)
    return f"[{character}{base}]" if len(base) == 1 and base != character else re.escape(character)


_FORMS: dict[str, LabelName] = {
    **_read_forms(_PLAIN),
    **_read_forms(_OWN),
    NEEDED_FOR_IT[:-1]: "needs",
}
_NAMES: dict[str, LabelName] = {_key(form): name for form, name in _FORMS.items()}
# Accents may be characters of their own.
_LONGEST_NAME = 2 * max(map(len, _NAMES))
_PROMPTED = frozenset({"step failed", "partial", "missing", "need", "needs", _key(NEEDED_FOR_IT[:-1])})
_PLAIN_KEYS = frozenset(map(_key, _read_forms(_PLAIN)))
_WORD = "|".join(_pattern(one) for one in sorted(_FORMS, key=len, reverse=True))
_FAILED = "|".join(_pattern(one) for one in _FORMS if _FORMS[one] == "failed")
_NEEDS_UPPER = "|".join(re.escape(one.upper()) for one in _FORMS if _FORMS[one] == "needs" and one.isascii())
LABEL = re.compile(
    rf"(?P<marks>{MARKS})(?P<status>{_STATUS})(?P<word>{_WORD})\.?(?:{_ASIDE})?"
    rf"(?:{_SEPARATOR}(?P<rest>.*)|{_SPACE}$)",
    re.IGNORECASE,
)
_BEGUN = re.compile(rf"{MARKS}{_STATUS}(?P<word>{_WORD})\.?(?P<after>.*)", re.IGNORECASE)
_PREFIX = re.compile(rf"{MARKS}{_STATUS}", re.IGNORECASE)
_UNDECIDED = re.compile(
    rf"{_ASIDE_BEGUN}{_SPACE}(?:(?:[:：|]|[-–—=](?=\s|$))[ \t\u00a0*_`]*.{{0,{_NOTHING_CHARACTERS}}})?"
    rf"|(?<=\.)[*_`]{{0,3}}[ \t].{{0,{_NOTHING_CHARACTERS}}}"
)
_STATUS_BEGUN = re.compile(r"(?:S|ST|STA|STAT|STATU|STATUS[*_`]{0,3}(?:[:=][ \t*_`]{0,5})?)", re.IGNORECASE)
"""What may follow the form of a label, and precede it, while a line is streamed."""
FAILED_FIRST = re.compile(
    rf"\A[\s>|*#_`~\u2190-\u2bff\ufe0f\U0001f000-\U0001faff-]{{0,50}}(?:{_FAILED})"
    r"(?:\b|(?<=[\u3040-\uffff]))[\s:：.*_`]*(?:[-–—][ \t]+)?",
    re.IGNORECASE,
)
NEEDS_IN_LINE = re.compile(rf"[\s(*_]{{1,6}}(?:{_NEEDS_UPPER}|{NEEDED_FOR_IT[:-1]})[*_]{{0,3}}[:：]")
LIST_ITEM = re.compile(r"[ \t]{0,20}(?:[-*+•]|\d{1,2}[.)])[ \t]")
HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_MAX_MARKS = 24
_FIELD = re.compile(rf"(?P<marks>{MARKS})(?P<head>[^\W\d][^:：\n]{{0,40}}?)[*_`]{{0,3}}[ \u00a0]?(?:[:：]|$)")
_MAX_FIELD_WORDS = 4
_MAX_VALUE_WORDS = 3
_COUNT = re.compile(r"\d{1,3}(?!\d)")
_MIN_FIELDS = 2
"""A label in a plain form among so many fields of the same form is a field, too."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label at the beginning of a line."""

    name: LabelName
    line: int
    rest: str
    """What follows it, or stands beside it in brackets."""
    is_capital: bool
    is_clear: bool
    """Whether its form is only used of the step itself."""
    form: str = ""
    """As it stands in the line."""

    @property
    def is_prompted(self) -> bool:
        """Whether it is one that the prompt names."""
        return self.is_capital and _key(self.form) in _PROMPTED

    @property
    def says_nothing(self) -> bool:
        """Whether it says that nothing is missing or needed."""
        return bool(self.rest) and NOTHING.fullmatch(self.rest) is not None


def read_label(line: str, number: int = 0) -> Label | None:
    """Return the label with which a line begins; None if there is none."""
    found = LABEL.match(line)
    if found is None:
        return None
    word, key = found["word"], _key(found["word"])
    rest = strip_marks(found["rest"] or "") or (found["aside"] or "").strip()
    is_clear = key not in _PLAIN_KEYS or bool(found["status"])
    return Label(_NAMES[key], number, rest, word.isupper(), is_clear, word)


def find_labels(lines: Sequence[str]) -> Iterator[Label]:
    """Yield the labels of an answer's lines."""
    return filter(None, (read_label(line, number) for number, line in enumerate(lines)))


def is_own(label: Label, lines: Sequence[str], end: int) -> bool:
    """Return whether a label says what its member did not do, not what something in the result is.

    In capitals it does so anywhere, else at the beginning or the end; `end` is the line after what it says.
    A plain form may be a field of the subject: in a list, or among others like it.
    """
    if label.rest.startswith(ABOUT_ANOTHER_STEP):
        return False
    if label.is_capital or label.name == "needs":
        return label.is_capital
    before = (line for line in islice(lines, label.line) if line.strip())
    is_item = LIST_ITEM.match(lines[label.line]) is not None or lines[label.line].lstrip().startswith("|")
    if all(HEADING.match(line) for line in before):
        is_term = bool(label.rest) and _is_field_below(lines, label.line)
        return begins_own(label, lines[label.line]) and (label.is_clear or not is_term)
    if label.name == "failed" or not _closes(lines, end, is_clear=label.is_clear) or _is_value(label, lines):
        return False
    return label.is_clear or not (is_item or lines[label.line - 1].strip() or _is_field(label, lines))


def _is_value(label: Label, lines: Sequence[str]) -> bool:
    """Return whether what follows a label is a value of the subject: a count, or a few words below fields."""
    if label.name != "partial" and _COUNT.match(label.rest):
        return True
    above = (_FIELD.match(one) for one in lines[max(label.line - _MIN_FIELDS, 0) : label.line])
    fields = [one for one in above if one and one[0].rstrip().endswith((":", "："))]
    return len(fields) == _MIN_FIELDS and 0 < len(label.rest.split()) <= _MAX_VALUE_WORDS


def begins_own(label: Label, line: str) -> bool:
    """Return whether a label that begins an answer is the member's own."""
    if label.name == "needs":
        return False
    is_marked = bool(label.rest) or not line[:1].isalpha()
    return label.is_clear or (label.name == "partial" and not LIST_ITEM.match(line) and is_marked)


def _closes(lines: Sequence[str], end: int, *, is_clear: bool) -> bool:
    """Return whether nothing of the result follows: nothing, what is needed, or one closing paragraph."""
    written = [*islice((lines[at] for at in range(end, len(lines)) if lines[at].strip()), 2)]
    if not written or read_label(written[0]) or speaks_of_need(written[0]):
        return True
    return is_clear and len(written) == 1 and not (HEADING.match(written[0]) or LIST_ITEM.match(written[0]))


def speaks_of_need(line: str) -> bool:
    """Return whether a line says what its member needs, or is a heading of that."""
    field = _FIELD.match(line)
    return OWN_NEED.search(line) is not None or (field is not None and NEED.search(field["head"]) is not None)


def _is_field(label: Label, lines: Sequence[str]) -> bool:
    """Return whether other lines have the form of a label's line: fields, or headings."""
    own = _FIELD.match(lines[label.line])
    if own is None:
        return False
    others = (_FIELD.match(line) for number, line in enumerate(lines) if number != label.line)
    alike = (
        one
        for one in others
        if one and one["marks"] == own["marks"] and len(one["head"].split()) <= _MAX_FIELD_WORDS
        if bool(one["marks"].strip()) or one[0].rstrip().endswith((":", "："))
    )
    enough = 1 if "#" in own["marks"] else _MIN_FIELDS
    return len([*islice(alike, enough)]) == enough


def _is_field_below(lines: Sequence[str], number: int) -> bool:
    """Return whether the next line is a field, as in a list of terms."""
    below = lines[number + 1] if number + 1 < len(lines) else ""
    field = _FIELD.match(below)
    return field is not None and field[0].rstrip().endswith((":", "：")) and read_label(below) is None


def strip_marks(text: str) -> str:
    """Return a text without marks of emphasis, code and tables around it; code at its end stays code."""
    stripped = text.strip(_AROUND)
    return f"{stripped}`" if stripped.count("`") % 2 and not stripped.startswith("`") else stripped


def say_label(line: str, *, is_first: bool = False) -> str | None:
    """Return a line with a label in words, "" if nothing is missing; None if it is shown as it is.

    `is_first` says that the line begins the answer.
    """
    label = read_label(line)
    if label is None or label.name == "failed" or label.rest.startswith(ABOUT_ANOTHER_STEP):
        return None
    if not label.is_capital and not (is_first and begins_own(label, line)):
        return None
    return "" if label.says_nothing else in_words(label, line)


def in_words(label: Label, line: str) -> str:
    """Return the line of a label as others read it: what the prompt names, in words.

    A label of the member's own, such as in the language of its answer, stays, without capitals.
    """
    if label.form and not label.is_prompted:
        return line.replace(label.form, label.form.capitalize(), 1) if label.is_capital else line
    words = NEEDED_FOR_IT if label.name == "needs" else MISSING_IN_IT
    return f"{words} {label.rest}" if label.rest else words


def may_become_label(line: str, *, is_first: bool = False) -> bool:
    """Return whether a line that is being written may become one that `say_label` changes."""
    found = _PREFIX.match(line)
    rest = line[found.end() :] if found else line
    if not rest:
        return len(line) < _MAX_MARKS
    is_open = is_first or rest == rest.upper()
    if is_open and (_STATUS_BEGUN.fullmatch(rest) or _is_begun_name(rest)):
        return True
    begun = _BEGUN.match(line)
    if begun is None or not (is_first or begun["word"].isupper()):
        return False
    return _UNDECIDED.fullmatch(line, begun.start("after")) is not None


def _is_begun_name(text: str) -> bool:
    if len(text) > _LONGEST_NAME:
        return False
    key = _key(text)
    return any(one.startswith(key) for one in _NAMES)


class LabelStream:
    """Puts the labels in a text that is streamed in words; what may become one waits for the next piece."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False
        """Whether the rest of the line passes as it is."""
        self._fence = ""
        self._is_first = True
        """Whether nothing but headings was written before the line."""

    def feed(self, text: str) -> str:
        """Return what can be shown now, perhaps nothing."""
        return "".join(self._feed_piece(piece) for piece in text.splitlines(keepends=True))

    def end(self) -> str:
        """Return the rest."""
        rest = self._decide(self._held, is_whole=True) or "" if self._held else ""
        self._held, self._is_decided = "", False
        return rest

    def _feed_piece(self, piece: str) -> str:
        is_end = piece.endswith("\n")
        if self._is_decided:
            self._is_decided = not is_end
            return piece
        self._held += piece
        shown = self._decide(self._held, is_whole=is_end)
        if shown is None:
            return ""
        self._held, self._is_decided = "", not is_end
        return shown

    def _decide(self, line: str, *, is_whole: bool) -> str | None:
        """Return the beginning of a line as it is shown; None as long as that is unknown."""
        body = line.rstrip("\r\n")
        if not is_whole and not body.strip("`~> \t") and len(body.strip()) < _FENCE_LENGTH:
            return None  # it may become a fence of code
        if self._fence or CODE_FENCE.match(body):
            self._follow_fence(body)
            self._is_first = False
            return line
        if not is_whole and may_become_label(body, is_first=self._is_first):
            return None
        words = say_label(body, is_first=self._is_first)
        if body.strip() and not HEADING.match(body):
            self._is_first = False
        return line if words is None else words + line[len(body) :]

    def _follow_fence(self, line: str) -> None:
        mark = CODE_FENCE.match(line)
        if mark and not self._fence:
            self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence):
            self._fence = ""
