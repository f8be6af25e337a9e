"""The language of a query, as Wikipedia names it."""

import re

# A script that one language of the big ones writes; kana before Han, which Japanese writes, too.
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
}
# Scripts of several languages, and the one that is meant when nothing else is known.
_SHARED = {
    "ru": (re.compile("[\u0400-\u04ff]"), {"ru", "uk", "be", "bg", "sr", "mk", "kk", "tg"}),
    "ar": (re.compile("[\u0600-\u06ff]"), {"ar", "fa", "ur"}),
    "hi": (re.compile("[\u0900-\u097f]"), {"hi", "mr", "ne"}),
}
_WRITTEN_OTHERWISE = {*_SCRIPTS, *(name for _, names in _SHARED.values() for name in names)}
# Those with some 100,000 articles. A client names the locale: one that is nobody's Wikipedia would fail
# there, and have Wikipedia set aside for everybody.
_LANGUAGES = frozenset(
    (
        *("af", "ar", "ast", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "eo"),
        *("es", "et", "eu", "fa", "fi", "fr", "gl", "he", "hi", "hr", "hu", "hy", "id", "it", "ja", "ka"),
        *("kk", "ko", "la", "lt", "lv", "mk", "mr", "ms", "my", "ne", "nl", "nn", "no", "pl", "pt", "ro"),
        *("ru", "sh", "sk", "sl", "sq", "sr", "sv", "ta", "te", "tg", "th", "tr", "uk", "ur", "uz", "vi"),
        "zh",
    )
)
_ALSO_CALLED = {"nb": "no", "cmn": "zh", "yue": "zh"}


def language_of(query: str, locale: str, fallback: str) -> str:
    """Return whose Wikipedia fits: by the query's script, else the locale (`de-DE`), else `fallback`.

    A locale whose language is written otherwise than the query is no word about it.
    """
    spoken = re.split("[-_]", locale.lower())[0]
    spoken = _ALSO_CALLED.get(spoken, spoken)
    known = spoken if spoken in _LANGUAGES else ""
    for language, letters in _SCRIPTS.items():
        if letters.search(query):
            return "ja" if language == "zh" and known == "ja" else language
    for language, (letters, names) in _SHARED.items():
        if letters.search(query):
            return next((one for one in (known, fallback) if one in names), language)
    return known if known and known not in _WRITTEN_OTHERWISE else fallback
