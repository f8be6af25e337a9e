"""Differences in words between a claim and its passage: negation, direction, order, names.

They only make a claim suspect: paraphrases differ in words, too.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from maniple.claims.context import ClaimContext
from maniple.claims.passages import IndexedPassage
from maniple.claims.source_index import SourceIndex
from maniple.claims.terms import find_names, is_unspaced, iterate_terms
from maniple.claims.verdict import Verdict
from maniple.evidence.negation import has_negation
from maniple.evidence.reasons import ReasonCode, Reasons, explain

LEAST_COVERAGE = 0.55
"""The share of a claim's words that a passage has from which the two are compared."""
CAPITALISED_NOUNS = frozenset(("de", "lb"))
"""Languages in which a capital does not tell a name from another noun."""
MAX_REMEMBERED = 1_000
"""Texts whose directions are remembered: a passage is compared with many claims."""
_OPPOSITES = tuple(
    (re.compile(one, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for one, other in (
        (
            r"\b(?:r[oi]se\w*|rising|increas\w+|gr[eo]w\w*|climb\w*|widen\w*|jump\w*|surg\w+|expand\w*|"
            r"stieg\w*|steig\w*|"
            r"gestiegen|wuchs\w*|zunahm\w*|augment\w+|hausse|progressé\w*|aument\w+|subió|crec\w+|cresc\w+|"
            r"steeg|gestegen|"
            r"вырос\w*|увеличил\w*)\b|增长|增長|上升|提高|增加|上涨|増加|上昇|증가|상승",
            r"\b(?:f[ae]ll\w*|declin(?!\w+ to)\w+|decreas\w+|drop\w*|slip\w*|shr[aiu]nk\w*|narrow\w*|sank|"
            r"sunk|gesunken|fiel\w*|"
            r"zurückg\w+|baiss\w+|recul\w+|diminu\w+|chut\w+|disminu\w+|bajó|cay\w+|cal\w+ato|dimin\w+|"
            r"caiu|daal\w+|gedaald|"
            r"снизил\w*|упал\w*|сократил\w*)\b|下降|减少|減少|下跌|降低|下滑|低下|감소|하락",
        ),
        (
            r"\b(?:more|higher|larger|longer|greater|mehr|höher\w*|größer\w*|länger\w*|supérieur\w*|"
            r"mayor\w*|más|maggior\w+|"
            r"più|maior\w*|mais|meer|hoger|больше|выше)\b|高于|多于|超过",
            r"\b(?:less|fewer|lower|smaller|shorter|weniger|niedriger\w*|kleiner\w*|kürzer\w*|inférieur\w*|"
            r"moins|menor\w*|"
            r"menos|minor\w*|meno|minder|lager|меньше|ниже)\b|低于|少于|不到",
        ),
        (
            r"\b(?:approv\w+|accept\w+|support\w*|favou?r\w*|agree[ds]?|zugestimmt|stimmt\w*|unterstütz\w*|"
            r"approuv\w+|souten\w+|"
            r"aprob\w+|apoy\w+|approv\w+|sosten\w+|aprov\w+|apoi\w+)\b|支持|批准|同意|賛成|찬성",
            r"\b(?:oppos\w+|reject\w+|refus\w+|against|turned down|gegen|lehnt\w*|abgelehnt|refusé\w*|"
            r"rejeté\w*|contre|"
            r"rechaz\w+|contra|respin\w+|rejeit\w+)\b|反对|反對|拒绝|否决|反対|반대",
        ),
        (
            r"\b(?:largest|biggest|highest|longest|oldest|most|größte\w*|höchste\w*|längste\w*|älteste\w*|"
            r"meiste\w*|plus grande?)"
            r"\b|最大|最高|最多|最长",
            r"\b(?:smallest|lowest|shortest|youngest|least|fewest|kleinste\w*|niedrigste\w*|kürzeste\w*|"
            r"wenigste\w*|moindre)\b|"
            r"最小|最低|最少|最短",
        ),
        (
            r"\b(?:before|earlier than|prior to|vor|bevor|avant|antes|prima|voor|до)\b|之前|早于",
            r"\b(?:after|later than|following|nach|nachdem|après|después|dopo|depois|na|после)\b|之后|晚于",
        ),
    )
)


def has_other_direction(claimed: str, found: str) -> bool:
    """Whether one text has a word such as `rose` or `more` where the other has only its opposite."""
    pairs = zip(_read_directions(claimed), _read_directions(found), strict=True)
    return any(here * there < 0 for here, there in pairs)


def find_suspicion(context: ClaimContext, index: SourceIndex) -> Verdict | None:
    """Return a `suspect` verdict if the most similar passage of a source differs in a word that decides."""
    if context.claim.kind == "cell" or not context.is_same_language(index):
        return None
    similar = context.find_similar(index)
    if not similar or similar[0][0] < LEAST_COVERAGE or similar[0][1].table >= 0:
        return None
    one = similar[0][1]
    if has_other_direction(context.claim.text, one.passage.text):
        return Verdict("suspect", explain(ReasonCode.OTHER_DIRECTION), one.passage, is_precise=True)
    difference = next(_find_differences(context, one, index), ())
    return Verdict("suspect", difference, one.passage) if difference else None


def _find_differences(context: ClaimContext, one: IndexedPassage, index: SourceIndex) -> Iterator[Reasons]:
    """Yield differences that are as frequent in right claims as in wrong ones."""
    claimed, found = context.claim.text, one.passage.text
    if has_negation(claimed) != has_negation(found):
        yield explain(ReasonCode.OTHER_NEGATION)
    if is_unspaced(claimed):
        return
    if index.language in CAPITALISED_NOUNS:
        return
    names = _find_names(context, index) & context.own_terms(index)
    around = index.around(one)
    if strange := sorted(name for name in names if name not in around):
        yield explain(ReasonCode.UNNAMED, name=", ".join(strange))
    if _is_reversed(claimed, found, names & find_names(f"x {found}")):
        yield explain(ReasonCode.OTHER_ORDER)


def _find_names(context: ClaimContext, index: SourceIndex) -> frozenset[str]:
    """Return the names of a claim; its first word if it is one in a source or in the text before it."""
    text = context.claim.text
    sure = find_names(text)
    first = find_names(f"x {text}") - sure
    if not first:
        return sure
    before, indexes = find_names(context.claim.before), (index, *context.cited, *context.others)
    return sure.union(one for one in first if one in before or any(each.has_name(one) for each in indexes))


@lru_cache(maxsize=MAX_REMEMBERED)
def _read_directions(text: str) -> tuple[int, ...]:
    """Return for each of `_OPPOSITES` 1 if a text has the first only, -1 if the second only, else 0."""
    return tuple(bool(one.search(text)) - bool(other.search(text)) for one, other in _OPPOSITES)


def _is_reversed(claimed: str, found: str, names: frozenset[str]) -> bool:
    if len(names) != 2:
        return False
    orders = [
        [*dict.fromkeys(term for term in iterate_terms(text) if term in names)] for text in (claimed, found)
    ]
    return orders[0] != orders[1]
