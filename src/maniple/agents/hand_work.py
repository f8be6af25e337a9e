"""Work that an answer cannot contain: running something, drawing a picture, writing a file.

Whether an order asks for it and whether an answer says that it was done is judged by words, as in
`answer_words`, in the languages of most requests.
"""

import re
from collections.abc import Collection
from typing import Literal, get_args

from maniple.agents.answer_words import CLAUSE_ENDS, MODALITY, RAN
from maniple.agents.deliverables import is_claimed, prose_of, split_sentences

HandWork = Literal["runs", "draws", "saves"]

_OBJECT = r"(?:the|this|that|these|it|them|an?|my|our|your|all|both|its|each|every|one|two|three)"
_START = r"(?:^|(?<=[.!?;,:] )|(?<=\band )|(?<=\bthen ))"
_PICTURE = (
    r"(?:\w*(?:chart|plot|graph|diagram|histogram|curve|drawing|picture|image|illustration|logo)s?"
    r"|\w*(?:diagramm|grafik|graphik|kurve|zeichnung|bild|abbildung|histogramm)(?:e|en|er|s)?"
    r"|(?:graphique|diagramme|courbe|dessin|schéma|histogramme)s?"
    r"|(?:gráfic[oa]|diagrama|curva|dibujo|imagen|histograma|grafico|disegno)s?)"
)
_FILE = (
    r"(?:files?|csv|json|pdf|docx|xlsx|spreadsheet|disk|\w*datei(?:en)?|fichiers?|archivos?|ficheros?|arquivos?"
    r"|tableur)"
)
_ASIDE = r"(?:(?!\b(?:of|from|about|in|on|for|to|von|über|des|du|del)\b)[^.!?\n]){0,60}?"
"""What may stand between a verb and its object, such as "a blue"."""
_NO_PICTURE = r"(?!(?:\w+ ){0,2}(?:conclusions?|comparisons?|attention|parallels?|lessons?|up)\b)"
_ORDERED: dict[HandWork, re.Pattern[str]] = {
    "runs": re.compile(
        rf"\b(?:run|execute|test|benchmark|profile|install|compile|deploy) {_OBJECT}\b"
        rf"|{_START}(?:run|execute|benchmark|profile|install|compile|deploy)\b"
        r"|\b(?:comput|calculat|check|verif|count|berechn|calcul)\w*\b[^.!?\n]{0,60}\b(?:with|using|in|mit|avec|con)"
        r" (?:python|code|bash|an? (?:program|script)|einem (?:programm|skript)"
        r"|un (?:programme|script|programa))\b"
        r"|\b(?:führe?\b[^.!?\n]{0,60}\baus|ausführen|lass\w*\b[^.!?\n]{0,60}\blaufen|testen?|installier\w*"
        r"|kompilier\w*|exécut\w*|lance[rz]?|teste[rz]|install(?:e|er|ez)|compile[rz]"
        r"|ejecut\w*|prueba|instala\w*|compila\w*|esegui\w*)\b|运行|執行|执行|测试|安装|编译|用\s?python|実行|실행",
        re.IGNORECASE | re.MULTILINE,
    ),
    "draws": re.compile(
        rf"\b(?:draw|paint|render|create|make|generate|produce|build|prepare)\b{_ASIDE}\b{_PICTURE}\b"
        rf"|\b(?:draw|plot|chart|graph|visuali[sz]e) {_NO_PICTURE}{_OBJECT}\b"
        rf"|{_START}(?:draw|plot|chart|graph|visuali[sz]e) {_NO_PICTURE}"
        r"|\b(?:zeichne\w*|plotte\w*|visualisier\w*|dessine\w*|trace[rz]?|dibuj\w*|graficar?|trazar?|disegna\w*"
        r"|desenh\w*)\b"
        r"|\b(?:erstell\w*|erzeug\w*|mach\w*|crée[rz]?|fais|faites|génère[rz]?|crea|haz|genera|fai)\b"
        rf"{_ASIDE}\b{_PICTURE}\b"
        r"|画|畫|绘制|繪製|绘图|作图|描画|描いて|그려|그리",
        re.IGNORECASE | re.MULTILINE,
    ),
    "saves": re.compile(
        r"\b(?:save|store|write|export|put|dump|keep)\b[^.!?\n]{0,80}?\b(?:in|into|to|as|on|onto)\b"
        rf"[^.!?\n]{{0,30}}?\b{_FILE}\b"
        rf"|\b(?:create|make|generate|produce|write) (?:an?|the|one|two) (?:\w+ ){{0,2}}{_FILE}\b"
        r"|\b(?:speicher\w*|sicher\w*|schreib\w*|exportier\w*|lege?)\b[^.!?\n]{0,80}?\b(?:in|als|unter)\b"
        rf"[^.!?\n]{{0,30}}?\b{_FILE}\b"
        rf"|\b{_FILE} (?:ab)?(?:speichern|schreiben|sichern|legen|zulegen|exportieren|erstellen)\b"
        rf"|\b(?:erstell\w*|erzeug\w*) (?:eine|die) (?:\w+ ){{0,2}}{_FILE}\b"
        r"|\b(?:enregistr\w*|sauvegard\w*|écri\w*|export\w*|mets|mettez)\b[^.!?\n]{0,80}?\b(?:dans|en|comme|sous|au)\b"
        rf"[^.!?\n]{{0,30}}?\b{_FILE}\b"
        r"|\b(?:guard\w*|escrib\w*|pon|salva\w*|scriv\w*)\b[^.!?\n]{0,80}?\b(?:en|como|in|em)\b"
        rf"[^.!?\n]{{0,30}}?\b{_FILE}\b"
        rf"|\b(?:crée[rz]?|crea|crear|cria) (?:une?|le|un|el|um) (?:\w+ ){{0,2}}{_FILE}\b"
        r"|(?:保存|存储|存成|存入|存到|写入|写到|写进|导出|导成|生成|输出)[^。！？\n]{0,20}(?:文件|文档)"
        r"|(?:文件|文档)[^。！？\n]{0,10}(?:保存|存|写)|ファイルに|파일(?:로|에)",
        re.IGNORECASE,
    ),
}
_DID = r"\b(?:I|we)(?:[’']ve| have)?(?: \w+ly| just| now| also| then)?"
_IS = r"\b(?:is|are|was|were|been)(?: \w+ly| now)?"
_STORED = re.compile(
    rf"{_DID} (?:saved|stored|exported)\b|{_IS} (?:saved|stored|exported)\b|\b(?:saved|stored) (?:in|to|as)\b"
    r"|\b(?:gespeichert|abgespeichert|abgelegt|exportiert|enregistrée?s?|sauvegardée?s?|guardad\w+|guardé"
    r"|exportad\w+|salvat\w|salvei|salvo)\b"
    r"|(?:已|已经|我)?(?:保存|存储|写入|存入|导出)(?:好|到|在|为|成|了)|保存しました|저장했",
    re.IGNORECASE,
)
_DONE: dict[HandWork, re.Pattern[str]] = {
    "runs": re.compile(RAN, re.IGNORECASE),
    "draws": re.compile(
        rf"{_DID} (?:drew|drawn|plotted|charted|graphed|painted|rendered|visuali[sz]ed)\b"
        rf"|{_IS} (?:drawn|plotted|charted|rendered|visuali[sz]ed)\b"
        rf"|\b(?:created|made|generated|produced|built|prepared)\b[^.\n]{{0,60}}\b{_PICTURE}\b"
        rf"|\b{_PICTURE}\b[^.\n]{{0,40}}\b(?:created|made|generated|produced|ready|done|finished|shows?)\b"
        rf"|\b(?:here is|here are|here[’']s|see) (?:the|your|an?) (?:\w+ ){{0,3}}{_PICTURE}\b"
        r"|\b(?:gezeichnet|geplottet|visualisiert|dessiné\w*|tracé\w*|dibujad\w+|dibujé|graficad\w+|grafiqué"
        r"|trazad\w+|disegnat\w|desenh(?:ei|ado))\b"
        rf"|\b{_PICTURE}\b[^.\n]{{0,40}}\b(?:erstellt|erzeugt|fertig|zeigt|créée?s?|prête?s?|montre|cread\w+"
        r"|list[oa]|muestra)\b"
        rf"|\b(?:créé|généré|creado|generado|creé)\b[^.\n]{{0,60}}\b{_PICTURE}\b"
        r"|(?:画|绘制|绘|畫)(?:好|完|出|成)?了|已(?:经)?(?:画|绘制)|图表?(?:如下|显示|已)|描きました|그렸",
        re.IGNORECASE,
    ),
    "saves": re.compile(
        rf"{_STORED.pattern}"
        rf"|\b(?:written|wrote|put|created|generated|produced|made)\b[^.\n]{{0,80}}\b{_FILE}\b"
        rf"|\b{_FILE}\b[^.\n]{{0,60}}\b(?:written|created|generated|ready)\b"
        rf"|\b(?:geschrieben|erstellt|erzeugt|écrite?s?|créée?s?|escrit\w+|escribí|cread\w+|creé)\b[^.\n]{{0,60}}"
        rf"\b{_FILE}\b"
        rf"|\b{_FILE}\b[^.\n]{{0,80}}\b(?:geschrieben|erstellt|erzeugt|écrite?s?|créée?s?|escrit\w+|cread\w+)\b",
        re.IGNORECASE,
    ),
}
_IN_TEXT = re.compile(
    r"^[ \t>]*(?:`{3,}|~{3,})|<svg\b|[█▓▒░▇▆▅▄▃▂▁]|[*#=_|/\\-]{5,}", re.MULTILINE | re.IGNORECASE
)
"""A drawing or the content of a file in an answer."""
_TESTS = re.compile(r"test|prueba|测试", re.IGNORECASE)


def find_ordered_work(order: str, *, has_address: bool = False) -> list[HandWork]:
    """Return the kinds of such work that an order asks for; a page is tested without a program."""
    found: list[HandWork] = []
    for kind in get_args(HandWork):
        words = [one[0] for one in _ORDERED[kind].finditer(order)]
        is_of_page = kind == "runs" and has_address and all(_TESTS.match(one) for one in words)
        if words and not is_of_page:
            found.append(kind)
    return found


def find_claimed_work(answer: str, kinds: Collection[HandWork], known: str) -> HandWork | None:
    """Return one of the kinds of which an answer says that it was done; None if it says so of none.

    What it says was done elsewhere, as by `known`, it may retell. A drawing, or the content of a file, may
    stand in the answer itself.
    """
    is_in_text = _IN_TEXT.search(answer) is not None
    for kind in kinds:
        words = _STORED if kind == "saves" and is_in_text else _DONE[kind]
        if (kind == "draws" and is_in_text) or _DONE[kind].search(known):
            continue
        if any(_is_said(one, words) for one in split_sentences(prose_of(answer))):
            return kind
    return None


def _is_said(sentence: str, words: re.Pattern[str]) -> bool:
    """Return whether a clause of a sentence says that something was done, and no other denies it."""
    kinds = {one.lastgroup for one in MODALITY.finditer(sentence)}
    if not kinds.isdisjoint({"unable", "negated"}):
        return False
    return any(is_claimed(one, words) for one in (sentence, *CLAUSE_ENDS.split(sentence)))
