"""Words that negate, by language: in claims, in what ellipses leave out, in brackets, before "more than".

The patterns also match a `wording`, in which apostrophes are spaces, if its ideographs are joined again.
"""

import re

_WORDS = {
    "en": r"not|never|no|none|nobody|nothing|nowhere|neither|nor|without|cannot|hardly|barely|scarcely|"
    r"(?:do|does|did|is|are|was|were|has|have|had|ca|could|wo|would|should|must|might|need|ai)n['’ ]?t",
    "de": r"nicht|nichts|nie|niemals|niemand\w{0,2}|nirgends|weder|kein\w{0,2}|ohne",
    # In Dutch, "pas in 2020" is "only in 2020".
    "fr": r"ne|pas(?! (?:in|na|om|op|sinds|toen|vanaf|\d))|jamais|sans|aucune?|rien|ni",
    "es": r"no|nunca|jamás|sin|ningun\w|ningún|nadie|tampoco",
    # In French and German, "mai" is May.
    "it": r"non|(?<!\d )(?<!\d\. )(?<!en )(?<!im )mai(?! \d)|senza|nessun\w?|neanche|nemmeno",
    "pt": r"não|nunca|jamais|sem|nenhum\w?|ninguém",
    "nl": r"niet|niets|nooit|geen|zonder|niemand",
    "sv": r"inte|aldrig|utan|ingen|inget|inga",
    "da": r"ikke|aldrig|ingen|intet|ingenting|uden",
    "no": r"ikke|aldri|ingen|ingenting|uten",
    "fi": r"ei|eivät|eikä|ilman|koskaan",
    "pl": r"nie|nigdy|bez|żaden|żadn\w+|nikt",
    "cs": r"ne|nikdy|bez|žádn\w+|nikdo|ne(?:ní|byl\w*|má|měl\w*|může|mohl\w*|bude)",
    "ro": r"nu|niciodată|fără|niciun\w*|nimeni|nimic",
    "hu": r"nem|nincs|soha|sem|nélkül",
    "tr": r"değil|yok|olmadan|hiçbir",
    "el": r"δεν|δε|μην|χωρίς|ποτέ|κανένα\w*|όχι",
    "ru": r"не|нет|ни|никогда|без|никто|ничего",
    "uk": r"не|ні|ніколи|без|жодн\w+|ніхто|немає?",
    "ar": r"لا|لم|لن|ليس\w*|بدون|دون",
    "vi": r"không|chưa|chẳng",
}
_DENIALS = {
    "en": r"fail(?:s|ed|ing)?(?: to)?|refus\w+|reject\w+|declined to|turned down|ruled out|den(?:y|ied|ies)",
    "de": r"lehnt\w*|abgelehnt|verweigert\w*",
    "fr": r"refusé\w*|rejeté\w*",
    "ru": r"отказал\w*|отверг\w*",
}
_IN_UNSPACED = (
    r"没|沒|不(?!到|足|仅|僅|少|同|断|斷|但|过|過|久|止|只)|未(?!来|來|満|满)|并非|並非|绝非|而非|"
    r"非(?!常|洲|凡|典|营|營|金)|[无無](?!论|論|线|線|人机|人機|疑)|勿|莫(?!斯|名|尔|大|桑)|"
    r"(?<![特区區分性级級个個类類差辨识識])[别別](?!的|墅|名|人|处|處)|ない|ません|않|못|नहीं|ไม่"
)
_DENIALS_IN_UNSPACED = r"否认|否認|拒绝|拒絕|否决"
_CJK = "\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SPACE_BETWEEN = re.compile(rf"(?<=[{_CJK}]) (?=[{_CJK}])")


_ELIDED = r"n['’](?=[aeiouyhéêà])"


def _join(words: dict[str, str]) -> str:
    return "|".join(words.values())


_NEGATION = re.compile(rf"\b(?:(?:{_join(_WORDS)})(?![^\W_])|{_ELIDED})|{_IN_UNSPACED}", re.IGNORECASE)
_WITH_DENIALS = re.compile(
    rf"\b(?:(?:{_join(_WORDS)}|{_join(_DENIALS)})(?![^\W_])|{_ELIDED})|{_IN_UNSPACED}|{_DENIALS_IN_UNSPACED}",
    re.IGNORECASE,
)


def has_negation(text: str, *, with_denials: bool = True) -> bool:
    """Whether a text has a word that negates, or with `with_denials` one such as `refused` or 否认."""
    plain = _SPACE_BETWEEN.sub("", text)
    return (_WITH_DENIALS if with_denials else _NEGATION).search(plain) is not None


def is_negation(word: str) -> bool:
    """Whether a word negates, such as the one before "more than"."""
    return _NEGATION.fullmatch(word) is not None
