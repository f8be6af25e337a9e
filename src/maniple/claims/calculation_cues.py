"""Words and signs by which a claim announces that a figure is calculated, in many languages."""

import re

from maniple.claims.quantities import FigureMention
from maniple.document.plain_text import OBJECT

_CUE = re.compile(
    r"\b(?:together|total\w*|combined|sum|overall|altogether|averag\w+|mean|median|share|ratio|times|twice|"
    r"doubl\w+|trebl\w+|"
    r"tripl\w+|half|halv\w+|third|quarter|fifth|tenth|more|less|fewer|higher|lower|longer|shorter|larger|"
    r"smaller|older|younger|"
    r"faster|slower|cheaper|dearer|than|difference|differ\w*|gap|margin|growth|grew|rose|risen|rising|fell|"
    r"fallen|falling|increas\w+|"
    r"decreas\w+|declin\w+|drop\w*|gain\w*|los[est]\w*|up|down|by|per|each|of (?:the|all)|both|remain\w*|"
    r"rest|left|equals?|"
    r"equivalent|corresponds?|roughly|calculat\w+|comput\w+|estimat\w+|implies|implying|after|later|"
    r"earlier|ago|years?|"
    r"zusammen|insgesamt|gesamt\w*|summe|durchschnitt\w*|mittel|anteil|mal|doppelt\w*|hälfte|drittel|"
    r"viertel|mehr|weniger|höher|"
    r"niedriger|länger|kürzer|größer|kleiner|älter|jünger|teurer|billiger|als|differenz|unterschied|"
    r"wachstum|wuchs|stieg\w*|"
    r"gestiegen|sank\w*|gesunken|fiel|zunahme|rückgang|um|pro|je|beide\w*|übrig\w*|rest|entspricht|macht|"
    r"rechnerisch|jahre?n?|"
    r"ensemble|total\w*|somme|moyenne|part|fois|double|moitié|tiers|quart|plus|moins|supérieure?|"
    r"inférieure?|que|écart|"
    r"différence|hausse|baisse|croissance|augment\w+|diminu\w+|recul\w*|par|chaque|deux|reste|soit|"
    r"correspond|ans?|"
    r"juntos|juntas|total|suma|promedio|media|proporción|veces|doble|mitad|tercio|cuarto|más|menos|mayor|"
    r"menor|diferencia|"
    r"aument\w+|crec\w+|baj\w+|cay\w+|por|cada|ambos|ambas|resto|años?|insieme|totale|somma|media|quota|"
    r"volte|doppio|metà|terzo|"
    r"più|meno|differenza|crescita|calo|per|ciascun\w|entramb\w|anni|juntos|soma|média|vezes|dobro|metade|"
    r"terço|mais|"
    r"diferença|queda|anos|samen|totaal|gemiddeld\w*|aandeel|keer|dubbel\w*|helft|derde|kwart|meer|minder|"
    r"hoger|lager|dan|"
    r"verschil|groei|daling|gestegen|gedaald|jaar|вместе|всего|итого|сумм\w+|средн\w+|дол[яи]|раза?|вдвое|"
    r"половин\w+|треть|"
    r"больше|меньше|выше|ниже|чем|разниц\w+|рост|вырос\w*|сни[зж]\w+|на|лет)\b"
    r"|%|＝|=|≈|~|合计|合計|共|总|總|平均|占|倍|比|差|多|少|增长|增長|增加|下降|减少|減少|每|半|一半|约合|合わせ|全体|割合|より|増|減|"
    r"합계|총|평균|비율|보다|증가|감소",
    re.IGNORECASE,
)

_WEAK_CUES = frozenset(
    [
        "by",
        "up",
        "down",
        "per",
        "an",
        "all",
        "each",
        "que",
        "la",
        "les",
        "par",
        "por",
        "um",
        "als",
        "na",
        "на",
        "een",
        "years",
        "year",
        "años",
        "anni",
        "anos",
        "ans",
        "jaar",
        "lat",
        "left",
        "third",
        "fifth",
        "tenth",
        "quarter",
        "estimated",
        "of the",
        "of all",
    ]
)
"""Words of `_CUE` that most claims without any calculation have, too."""
_RESULT = re.compile(
    r"\b(?:works? out|comes? to|therefore|thus|hence|consequently|accordingly|in all|between|against|"
    r"imply|per|remain\w*|missing|lacks?|short of|compared|versus|would|"
    r"somit|demnach|folglich|also|daher|mithin|ergibt|zwischen|gegenüber|gegen|fehl\w+|bleib\w+|"
    r"donc|ainsi|entre|contre|manqu\w+|rest\w+|rendement|"
    r"así|asi|por tanto|entre|frente|faltan?|queda\w*|"
    r"quindi|dunque|pertanto|tra|fra|contro|mancano?|resta\w*|"
    r"portanto|logo|contra|faltam?|resta\w*|dus|tussen|tegen(?:over)?|blij\w+|"
    r"итак|значит|следовательно|таким образом|между|против|оста\w+|котор\w+ состав\w+)\b"
    r"|因此|所以|即|还剩|剩|相差|つまり|したがって|よって|残り|따라서|즉|남은",
    re.IGNORECASE,
)


_OWN_RESULT = re.compile(
    r"\b(?:calculat\w+|comput\w+|berechn\w+|errechn\w+|calcul\w*|calcol\w*|bereken\w*|рассчит\w+|расч[её]т\w*)\b"
    r"|计算|計算|算出|计得|계산",
    re.IGNORECASE,
)
"""Words with which a claim says that it was calculated."""


def has_cue(text: str) -> bool:
    """Whether a text has a word that announces a calculation, such as `together` or `more than`."""
    return _CUE.search(text) is not None


def announces_result(text: str) -> bool:
    """Whether a text has a formula, or a word with which it gives what follows from other figures."""
    return OBJECT in text or _RESULT.search(text) is not None


def says_calculated(text: str) -> bool:
    """Whether a text says that it was calculated."""
    return _OWN_RESULT.search(text) is not None


def announces_calculation(text: str, figure: FigureMention) -> bool:
    """Whether a claim may give a figure as calculated, and not as a source reports it.

    Shares, changes and multiples mostly are calculated; so are rounded figures, and those in a claim with a
    formula or with a word that announces a result.
    """
    if figure.about or figure.kind in ("percent", "points", "factor") or announces_result(text):
        return True
    return any(found[0].casefold() not in _WEAK_CUES for found in _CUE.finditer(text))
