"""Whether a text asks something, by its form alone.

Languages: English, German, French, Spanish, Russian, Chinese and Japanese.
"""

import re
from collections.abc import Iterable

_QUESTION_WORDS = (
    *("what(?:['’]s)?", "why(?! not)", "how(?! about)", "when", "where", "who(?:se)?", "which", "whether"),
    *("is", "are", "was", "were", "does", "did", "wie", "wieso", "weshalb", "warum", "wann", "wo(?:hin|zu)?"),
    *("wer", "welche[rsnm]?", "ist", "sind", "gibt es", "pourquoi", "comment", "quand", "où", "qui", "quoi"),
    *("quel(?:le)?s?", "combien", "est-ce", "qu['’]est-ce", "(?:por )?qué", "cómo", "cuándo", "dónde"),
    *("quién(?:es)?", "cuál(?:es)?", "cuánt[oa]s?", "что", "почему", "зачем", "как", "когда", "где", "кто"),
    *("сколько", "как(?:ой|ая|ие|ое)", "можно ли"),
)
"""They begin a question, with or without a question mark."""
_INQUIRIES = (
    *(
        "i wonder",
        "i (?:would|['’]?d) like to know",
        "(?:can|could) (?:you|we|i) (?:explain|tell|say|clarify)",
    ),
    *("tell me", "explain", "ich frage mich", "ich (?:möchte|will|würde gerne?) wissen", "erklär(?:e|en|t)?"),
    *("(?:kannst du|könntest du|können sie|könnten sie)(?: mir)? (?:erklären|sagen)", "sag(?:t|en sie)? mir"),
    *("je me demande", "(?:peux-tu|pouvez-vous|pourriez-vous)(?: m['’])? ?(?:expliquer|dire)", "expliquez?"),
    *(
        "dis-moi",
        "dites-moi",
        "me pregunto",
        "(?:puedes|podrías) (?:explicar|decir)(?:me)?",
        "explica(?:me)?",
    ),
    *("dime", "объясни(?:те)?", "скажи(?:те)?", "интересно", "(?:можешь|можете) (?:объяснить|сказать)"),
)
"""They begin a wish to know something."""
_REQUESTS = (
    *(
        "(?:can|could|will|would) (?:you|we|the \\w+)\\b(?! be\\b)",
        "why not",
        "how about",
        "what about",
        "shall we",
    ),
    *("should(?:n['’]t)? we", "(?:kannst|könntest|würdest) du", "(?:können|könnten|würden) (?:sie|wir)"),
    *(
        "(?:könnt|könntet) ihr",
        "(?:peux|pourrais)-tu",
        "(?:pouvez|pourriez)-vous",
        "(?:puedes|podrías|podríais)",
    ),
    *(
        "(?:не )?(?:можешь|можете|мог(?:ла|ли)? бы)",
        "(?:你们?)?(?:能不能|可不可以|能否|可以)(?:请|把|再|也|加|改|用|换|删|写|帮)",
    ),
)
"""They begin a question that asks for something to be done."""
_POLITE = "please|kindly|bitte|s['’]il (?:te|vous) pla[iî]t|por favor|пожалуйста"
_CJK_POLITE = r"请(?!问)|ください|下さい|(?:てくれ|てもらえ|ていただけ)ます"
_CJK_QUESTION = (
    r"(?:吗|呢|嗎|か)[\s。.!！]*\Z|请问|为什么|為什麼|怎么|怎样|什么时候|多少|是否|是不是|会不会|能不能|可不可以"
    r"|なぜ|どうして|どうやって|いつ|説明して"
)
_START = rf"[\s\"'“«¡¿]*(?:(?:hi|hello|hallo|and|but|und|aber|et|mais|y|pero|а|и|но|{_POLITE})[\s,]+)*"


def _begins(phrases: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?:{'|'.join(phrases)})(?!\w)", re.IGNORECASE)


_WORD_FIRST = _begins(_QUESTION_WORDS)
_INQUIRY_FIRST = _begins(_INQUIRIES)
_REQUEST_FIRST = re.compile(rf"{_START}(?:{'|'.join(_REQUESTS)})", re.IGNORECASE)
_HAS_POLITE = re.compile(rf"(?<!\w)(?:{_POLITE})(?!\w)|{_CJK_POLITE}", re.IGNORECASE)
_HAS_MARK = re.compile(r"[?？؟¿]")
_HAS_CJK_QUESTION = re.compile(_CJK_QUESTION)


def has_question_form(text: str) -> bool:
    """Return whether a text has the form of a question, which may ask for something to be done."""
    signs = (_WORD_FIRST.match, _INQUIRY_FIRST.match, _HAS_MARK.search, _HAS_CJK_QUESTION.search)
    return any(sign(text) for sign in signs)


def is_question(text: str) -> bool:
    """Return whether a text asks to know something, and not for something to be done.

    What is unclear is a question.
    """
    if not has_question_form(text):
        return False
    if _WORD_FIRST.match(text) or _INQUIRY_FIRST.match(text):
        return True
    return not (_REQUEST_FIRST.match(text) or _HAS_POLITE.search(text))
