"""Signs and statistics that a claim changes: a loss that became a profit, a median given as the mean.

Both need words in known languages: any word of a fall or of a place below, or a negation, may stand for the
sign, and then nothing is decided.
"""

import re
from collections.abc import Sequence
from functools import cache

from maniple.claims.context import ClaimContext
from maniple.claims.misplaced import is_same_kind, kind_of_misplaced, report_other
from maniple.claims.numerals import fold_digits
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention
from maniple.claims.segments import FigureClause
from maniple.claims.source_index import SourceIndex
from maniple.claims.verdict import Verdict
from maniple.evidence.negation import has_negation
from maniple.evidence.reasons import ReasonCode, explain

_Hit = tuple[FigureMention, IndexedPassage]
"""A figure of a source that agrees with one of a claim, and its passage."""
_SIGNED_KINDS = ("percent", "points", "money", "quantity")
"""Kinds of figures that have a sign. A hyphen before a bare number in a sentence may be a dash."""
_SIGN = re.compile(r"(?<![\w)%€$£¥-])[-–] ?(?:(?:US)?[$€£¥₹]|[A-Z]{3}) ?\Z")
"""The sign before a currency, at the beginning of the figure."""
_DIGIT = re.compile(r"\d")
_RANGE = re.compile(r"[\d%] ?\Z")
"""What makes the hyphen before a figure that of a range: `10 -15 %`."""
_BRACKETS = re.compile(r"\A\W{0,3}\(.*\)\W{0,3}\Z", re.DOTALL)
"""A cell in brackets, as accountants write what is negative."""
_BELOW = {
    "en": r"minus|negativ\w*|below|under\w*|less\w*|lower\w*|f[ae]ll\w*|drop\w*|declin\w*|decreas\w*|down\w*|"
    r"reduc\w+|cut\w*|los[est]\w*|losing|deficit\w*|shortfall\w*|shr[aiu]nk\w*|contract\w*|slump\w*|sl[iu]d\w*|"
    r"slip\w*|plung\w*|plummet\w*|dip\w*|tumbl\w*|crash\w*|collaps\w*|s[aiu]nk\w*|subsid\w*|retreat\w*|"
    r"reced\w*|rece(?:ssion|ding)|weak\w*|wors\w*|deteriorat\w*|eas(?:ed|es|ing)|slow\w*|cool\w*|cold\w*|"
    r"fr(?:eez|oz)\w*|frost\w*|fewer|short\w*|shed\w*|erod\w*|lag\w*|behind|miss(?:ed|es|ing)|debt\w*|"
    r"ow(?:e|ed|es|ing)|outflow\w*|withdr\w*|red|debit\w*|discount\w*|sav(?:e|ed|es|ing|ings)|off|"
    r"differ\w*|gap|apart|absolute|magnitude|inverse\w*|opposite\w*|depth\w*|deep\w*|beneath|BCE?|west\w*|"
    r"south\w*|ago|before|earl\w+|trim\w*|slash\w*|halv\w*|dwindl\w*|diminish\w*|narrow\w*|swing|"
    r"write-?(?:down|off)s?|impair\w*|trail\w*|squeez\w*|moderat\w*|backward\w*|remov\w*|cheap\w*|small\w*",
    "de": r"minus|negativ\w*|unter\w*|weniger|niedriger\w*|geringer\w*|fiel\w*|fall\w*|fäll\w*|gefallen|"
    r"sank\w*|sink\w*|gesunken|senk\w*|gesenkt|rückg\w+|rückläufig\w*|zurück\w*|abn\w+|abgen\w+|nahm\w*|"
    r"verlor\w*|verlier\w*|verlust\w*|\w*defizit\w*|fehl\w*|schrumpf\w*|geschrumpft|einbu\w+|einbr\w+|"
    r"reduzier\w*|reduktion\w*|kürz\w+|gekürzt|verringer\w*|vermind\w*|gemindert|minder\w*|schlechter\w*|"
    r"schwäch\w*|kälte\w*|kalt\w*|kälter\w*|frost\w*|tief\w*|tiefe|schuld\w*|unterschied\w*|abweich\w*|"
    r"abstand|lücke|betrag\w*|umgekehrt\w*|gegenläufig\w*|ab(?:bau\w*|gebaut|wärts|sturz|schmelz\w*)|"
    r"rabatt\w*|spar\w*|gespart|eingespart|billiger\w*|günstiger\w*|vor|west\w*|süd\w*|kleiner\w*|halb\w*",
    "fr": r"moins|négati\w+|sous|inférieur\w*|baiss\w*|chut\w*|recul\w*|diminu\w*|dimin\w*|perd\w*|perte\w*|"
    r"déficit\w*|manqu\w*|régress\w*|réduc\w*|réduit\w*|rédui\w*|contract\w*|effondr\w*|tomb\w*|gel\w*|"
    r"froid\w*|profond\w*|dessous|dett\w*|différence\w*|écart\w*|invers\w*|absolu\w*|repli\w*|ralenti\w*|"
    r"déclin\w*|ouest|sud|avant|économ\w*|remise\w*|retard\w*|fléch\w*|descend\w*",
    "es": r"menos|negativ\w*|bajo|baj\w+|inferior\w*|ca(?:e|er|en|yó|yeron|ída\w*|ído)|disminu\w*|descen\w*|"
    r"reduc\w*|reduj\w*|perd\w*|pérdida\w*|pierd\w*|déficit\w*|retroce\w*|contra\w*|falta\w*|frío\w*|"
    r"helad\w*|profund\w*|debajo|deud\w*|diferencia\w*|inver[st]\w*|absolut\w*|oeste|sur|antes|recort\w*|"
    r"ahorr\w*|descuent\w*|menor\w*",
    "it": r"meno|negativ\w*|sotto|inferior\w*|cal\w+|scend\w*|sces\w*|diminu\w*|riduz\w*|ridott\w*|"
    r"rid[ou]\w*|perd\w*|perse|persi|perso|deficit|disavanz\w*|contra\w*|manc\w*|fredd\w*|gel\w*|profond\w*|debit\w*|"
    r"differenz\w*|invers\w*|assolut\w*|ovest|sud|prima|risparmi\w*|scont\w*|minor\w*|arretr\w*|fless\w*",
    "pt": r"menos|negativ\w*|abaixo|inferior\w*|ca[ií]\w*|queda\w*|quedas|diminu\w*|redu[zç]\w*|perd\w*|"
    r"défice\w*|déficit\w*|prejuízo\w*|recu\w*|retra\w*|contra\w*|falt\w*|fri\w*|profund\w*|sob|dívid\w*|"
    r"diferenç\w*|invers\w*|absolut\w*|oeste|sul|antes|poup\w*|descont\w*|menor\w*|desc\w+|baix\w*",
    "nl": r"min|minus|negatie\w*|onder\w*|minder|lager\w*|dal\w*|gedaald|zak\w*|gezakt|afn\w+|afgen\w+|"
    r"nam\w*|verlie\w*|verlor\w*|tekort\w*|krimp\w*|gekrompen|kromp\w*|verminder\w*|teruggang|terug\w*|achter\w*|"
    r"koud\w*|vries\w*|vorst\w*|diep\w*|schuld\w*|verschil\w*|omgekeerd\w*|absolut\w*|west\w*|zuid\w*|"
    r"bespa\w*|korting\w*|kleiner|slechter|voor|reduc\w*",
    "ru": r"минус\w*|отрицательн\w*|ниже|меньше|менее|упал\w*|пад\w+|сни[жз]\w*|сократ\w*|сокращ\w*|"
    r"уменьш\w*|потер\w*|убыт\w*|дефицит\w*|нехват\w*|спад\w*|мороз\w*|холод\w*|глубин\w*|под|долг\w*|разниц\w*|"
    r"обратн\w*|абсолютн\w*|запад\w*|юж\w*|юг\w*|раньше|скидк\w*|эконом\w*|хуже|отста\w*",
}
_BELOW_UNSPACED = re.compile(
    "[负負减減降跌落亏虧损損赤低下少缺欠冷冻凍冰深差逆反西南缩縮退衰省]|零下|マイナス|前|以内|빼|감소|하락|떨어|내[려린렸]|줄|손실|적자|"
    "영하|마이너스|음수|이하|낮|부족|차이|깊이|아래|남위|서경|추[운위]|절감|할인|축소|후퇴"
)
"""Words in Chinese, Japanese and Korean."""
_UNSPACED = frozenset({"zh", "ja", "ko"})
_STATISTICS = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "median": r"\b(?:median\w*|médian\w*|mediaan|медиан\w*)\b|中位数|中位數|中央値|중앙값|중위",
        "mean": r"\b(?:mean|average[sd]?|averaging|durchschnitt\w*|mittelwert\w*|im mittel|moyen(?:ne)?s?|"
        r"promedi\w*|medi[ao]s?|médi[ao]s?|gemiddeld\w*|средн\w*)\b|平均|평균",
        "minimum": r"\b(?:minim(?:um|al|o|a|i|e)\w*|mínim\w*|минимум\w*|минимальн\w*)\b|最小值|最低值",
        "maximum": r"\b(?:maxim(?:um|al)\w*|máxim\w*|massim[oaie]|максимум\w*|максимальн\w*)\b|最大值|最高值",
    }.items()
}
"""Words of a kind of figure; a passage that names two kinds in a clause decides nothing."""
_OTHER_STATISTIC = {"median": "mean", "mean": "median", "minimum": "maximum", "maximum": "minimum"}


def find_other_sign(
    context: ClaimContext, figure: FigureMention, hit: _Hit, index: SourceIndex
) -> Verdict | None:
    """Return a verdict if a figure has a sign in only one of claim and passage, and no word stands for it."""
    found, one = hit
    if figure.kind not in _SIGNED_KINDS and context.claim.kind != "cell" and one.table < 0:
        return None
    claim = context.claim
    passage = one.cell if one.table >= 0 else one.passage.text
    is_claimed, is_found = _has_sign(claim.text, figure), _has_sign(passage, found)
    if is_claimed == is_found:
        return None
    if is_found:
        texts = (claim.text, claim.row, claim.column, claim.before, claim.heading)
        is_bracketed = claim.kind == "cell" and _BRACKETS.match(claim.text) is not None
        may_differ = is_bracketed or _is_below(texts, context.language or index.language)
    else:
        # The head of a table, or the words around it, may say that its figures are losses.
        is_table = one.table >= 0 or claim.kind == "cell"
        may_differ = is_table or _is_below((passage,), index.language or context.language)
    return None if may_differ else _report(figure, found, one, index)


def find_other_statistic(
    context: ClaimContext, figure: FigureMention, hit: _Hit, index: SourceIndex
) -> Verdict | None:
    """Return a verdict if a claim gives as the mean what the passage gives as the median, or the reverse."""
    found, one = hit
    if one.table >= 0 or context.claim.kind == "cell":
        return None
    claimed = _read_statistics(context.claim.text, figure, context.figures)
    if len(claimed) != 1:
        return None
    if _read_statistics(one.passage.text, found, one.figures) != {_OTHER_STATISTIC[claimed.pop()]}:
        return None
    reasons = explain(ReasonCode.OTHER_SUBJECT, source=index.label, value=figure.text)
    return Verdict(kind_of_misplaced(context), reasons, one.passage)


def _report(figure: FigureMention, found: FigureMention, one: IndexedPassage, index: SourceIndex) -> Verdict:
    if index.number:
        return report_other(figure.text, [found], one, index)
    reasons = explain(ReasonCode.OTHER_RESULT, found=found.text, value=figure.text)
    return Verdict("contradicted", reasons, one.passage)


def _read_statistics(text: str, figure: FigureMention, figures: Sequence[FigureMention]) -> set[str]:
    same = [one for one in figures if is_same_kind(figure, one)]
    clause = FigureClause(text, figure, same).read()
    return {name for name, pattern in _STATISTICS.items() if pattern.search(clause)}


def _has_sign(text: str, figure: FigureMention) -> bool:
    """Whether a figure of a text is written with a minus sign, also before its currency."""
    if figure.value < 0:
        return _RANGE.search(fold_digits(text), 0, figure.start) is None
    if figure.kind != "money":
        return False
    plain = fold_digits(text)
    digit = _DIGIT.search(plain, figure.start, figure.end)
    return digit is not None and _SIGN.search(plain, 0, digit.start()) is not None


def _is_below(texts: Sequence[str], language: str) -> bool:
    """Whether a text may say that a figure is negative, or is in a language whose words are not known."""
    words = _words_below(language)
    return words is None or any(words.search(text) or has_negation(text) for text in texts if text)


@cache
def _words_below(language: str) -> re.Pattern[str] | None:
    if language in _UNSPACED:
        return _BELOW_UNSPACED
    known = _BELOW.get(language)
    return re.compile(rf"\b(?:{known})\b", re.IGNORECASE) if known else None
