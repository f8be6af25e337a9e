"""Which language the user speaks: a small model keeps to it only when it is named."""

import re

_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LANGUAGE_NAME = re.compile(r"[A-Za-z][A-Za-z ()-]{1,19}")
_CHINESE = re.compile(r"(?:zh|chinese|中文)", re.IGNORECASE)
_EXAMPLES = {
    "zh": _CHINESE,
    "de": re.compile(r"de\b|german|deutsch", re.IGNORECASE),
    "fr": re.compile(r"fr\b|french|français", re.IGNORECASE),
    "es": re.compile(r"es\b|spanish|español", re.IGNORECASE),
}
"""The languages of the worked examples of plans, by how their names begin; the rest have English ones."""


def is_chinese(text: str) -> bool:
    """Say whether `text` holds Chinese characters, and no Japanese or Korean ones."""
    return _HAN.search(text) is not None and _KANA_OR_HANGUL.search(text) is None


def spoken_in(request: str, named: str) -> str:
    """Return the request's language where its letters show it, else what the model `named`."""
    if is_chinese(request):
        return "Chinese"
    # Of a sum without any word the model says "Chinese".
    wordless = not any(character.isalpha() for character in request)
    if wordless or not _LANGUAGE_NAME.fullmatch(named) or _CHINESE.match(named):
        return "English" if wordless else ""
    return named


def language_of(request: str, locale: str) -> str:
    """Return the language to answer in: "Chinese", the `locale` or a name, or words for an unknown one."""
    if _CHINESE.match(locale) or (not locale and is_chinese(request)):
        return "Chinese"
    return locale or "the language of the request"


def examples_for(language: str) -> str:
    """Return the name of the examples of plans to show: a small model's titles follow their language."""
    known = (code for code, beginning in _EXAMPLES.items() if beginning.match(language.replace("_", "-")))
    return f"plan_{next(known, 'en')}"
