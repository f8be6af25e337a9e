"""How plausible the bytes of a page are as a text of each script: by its most frequent letters.

A wrong encoding of the same kind decodes without an error, but gives rare letters, capitals inside words, or
words of two scripts.
"""

import re
from collections import Counter
from dataclasses import dataclass

MIN_MARGIN = 0.2
"""A declared encoding is replaced only by one that scores this much better."""
PLAUSIBLE = 0.5
"""The least score of a text; a right one mostly has 0.8 to 1."""
_CERTAIN = 0.85
_ASCII = bytes(range(128))
_SAMPLE_BYTES = 16_000
_MIN_LETTERS = 12
_MIN_BYTES = 40
"""With fewer bytes beyond ASCII, a declaration is believed."""
_MIXED = re.compile(r"[A-Za-z][^\W\d_A-Za-z]|[^\W\d_A-Za-z][A-Za-z]")
_CAPITAL_INSIDE = re.compile(r"[^\W\d_A-ZА-ЯЁЂ-ЏΑ-ΩҐ][А-ЯЁЂ-ЏΑ-ΩҐ]")
_WEIGHT_OF_FAULTS = 2.0
_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日"
    "军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相"
    "见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡"
    "用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日"
    "軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相"
    "見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名"
)
_KANA = "".join(map(chr, range(0x3041, 0x3094))) + "".join(map(chr, range(0x30A1, 0x30F5))) + "ー、。"
_KANJI = (
    "日一国人年大十二本中長出三時行見月分後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川"
    "千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨京都県市区町村社会部者所的方地田新合業発力代"
)
_HANGUL = (
    "이다는의에을가고지하기로한은도를사리어시아서그자인나대해스라정일수부있전들것여니보제만장오면조었년과국상주"
    "원구공소신비안으화무마간진세우동관게습까할위와드트성방선계요실문개했분연적산경모물저거들교용회생내유심음려"
    "경학당중며된체"
)
_CYRILLIC = "оеаинтсрвлкіуј"
_GREEK = "αοιετνσςρκηπυμλάίόέ"
_HEBREW = "יוהלאתרמבנשםח"
_ARABIC = "الينموتربعسدفه"
_THAI = "านรอกเงมยลวดทสตะ่าิี้ั"


@dataclass(frozen=True, slots=True)
class ScriptModel:
    """The letters that are frequent in a script, and the share of all letters that they have at least."""

    common: frozenset[str]
    share: float


_MODELS = {
    name: ScriptModel(frozenset(letters), share)
    for name, letters, share in (
        ("cyrillic", _CYRILLIC, 0.65),
        ("greek", _GREEK, 0.75),
        ("hebrew", _HEBREW, 0.70),
        ("arabic", _ARABIC, 0.70),
        ("thai", _THAI, 0.65),
        ("simplified", _SIMPLIFIED, 0.30),
        ("traditional", _TRADITIONAL, 0.30),
        ("japanese", _KANA + _KANJI, 0.50),
        ("hangul", _HANGUL, 0.40),
    )
}
_SCRIPTS = {
    "cp1251": ("cyrillic",),
    "koi8-u": ("cyrillic",),
    "iso8859-5": ("cyrillic",),
    "cp866": ("cyrillic",),
    "mac-cyrillic": ("cyrillic",),
    "cp1253": ("greek",),
    "iso8859-7": ("greek",),
    "cp1255": ("hebrew",),
    "iso8859-8": ("hebrew",),
    "cp1256": ("arabic",),
    "iso8859-6": ("arabic",),
    "cp874": ("thai",),
    "tis-620": ("thai",),
    "gb18030": ("simplified", "traditional"),
    "big5hkscs": ("traditional",),
    "cp932": ("japanese",),
    "euc_jp": ("japanese",),
    "cp949": ("hangul",),
}
"""The scripts of each encoding, the more frequent encodings of a script first."""


def has_model(codec: str) -> bool:
    """Return whether the script of `codec` is known, so that a declaration of it can be judged."""
    return codec in _SCRIPTS


def score_encoding(sample: bytes, codec: str) -> float:
    """Return how plausible `sample`, without markup, is in `codec`: below 0 to 1; 0 for an unknown one."""
    text = sample[:_SAMPLE_BYTES].decode(codec, "replace")
    return max((_score_text(text, _MODELS[name]) for name in _SCRIPTS.get(codec, ())), default=0.0)


def find_encoding(sample: bytes, declared: str = "") -> str:
    """Return the encoding that explains `sample` clearly better than `declared`; "" if there is none.

    Texts in Latin script and very short ones have none.
    """
    if declared and len(sample.translate(None, _ASCII)) < _MIN_BYTES:
        return ""
    least = score_encoding(sample, declared) if declared else PLAUSIBLE - MIN_MARGIN
    if least >= _CERTAIN:
        return ""
    scores = {codec: score_encoding(sample, codec) for codec in _SCRIPTS}
    best = max(scores, key=lambda codec: scores[codec])
    return best if scores[best] >= max(PLAUSIBLE, least + MIN_MARGIN) else ""


def _score_text(text: str, model: ScriptModel) -> float:
    counts = Counter(text)
    # Everything beyond ASCII counts, so that signs in the place of letters lower the score.
    others = {one: count for one, count in counts.items() if one > "\x9f" and not _is_punctuation(one)}
    total = sum(others.values()) + sum(count for one, count in counts.items() if "\x7f" < one <= "\x9f")
    if total < _MIN_LETTERS:
        return 0.0
    found = sum(count for one, count in others.items() if one in model.common or one.lower() in model.common)
    faults = len(_MIXED.findall(text)) + len(_CAPITAL_INSIDE.findall(text)) + counts["\ufffd"]
    return min(found / total / model.share, 1.0) - _WEIGHT_OF_FAULTS * faults / total


def _is_punctuation(one: str) -> bool:
    return one in "\xa0«»·©®–—‘’“”„…•№、。，！？：；（）《》「」『』\u3000・％"
