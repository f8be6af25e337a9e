"""Languages: their function words, which say nothing about a topic, and the stems of their other words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MIN_FUNCTION_WORDS = 3
"""A text with fewer is of no known language."""
_SAMPLE_CHARACTERS = 4_000
_MIN_SHARE = 0.15
_MIN_LEAD = 1.3
_WORD = re.compile(r"[^\W\d_]+")
_MAX_STEMS = 200_000
"""Of each language in memory; some 20 MB."""
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": """
            a about above after again all also am an and any are as at be because been before being below
            between both but by can could did do does doing don during each few for from further had has
            have having he her here hers him his how i if in into is it its itself just me more most much
            many my no nor not now of off on once only or other our ours out over own s same she should so
            some such t than that the their theirs them then there these they this those through to too
            under until up very was we were what when where which while who whom whose why will with would
            you your yours
        """,
        "german": """
            aber alle allem allen aller alles als also am an andere auch auf aus bei beim bin bis bist da
            damit dann das dass dem den denn der des dessen deren die dies diese diesem diesen dieser dieses
            doch dort du durch ein eine einem einen einer eines einige er es etwas euch für gegen gewesen
            hab habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
            ins ist jede jedem jeden jeder jedes kann kein keine können man mein meine mich mir mit nach
            nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind
            so sondern soll über um und uns unser unter viel viele vom von vor war waren warum was weil
            welche welchem welchen welcher welches wenn werde werden wer wie wieder will wir wird wo wurde
            wurden zu zum zur zwischen
        """,
        "french": """
            a afin ai ainsi alors après au aucun aussi autre aux avait avant avec avez avoir avons c ce cela
            ces cet cette ceux chez comme comment combien d dans de depuis des donc dont du elle elles en
            encore entre est et étaient était être eu fait il ils j je l la laquelle le lequel les leur
            leurs lors lui m ma mais me mes moi mon même n ne nos notre nous on ont ou où par pas pendant
            peu peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera
            ses si son sont sous sur t ta te tes toi ton tous tout toute toutes très tu un une vers vos
            votre vous y
        """,
        "spanish": """
            a al algo algunos ante antes aquel como con contra cual cuál cuando cuándo cuanto cuánto de del
            desde donde dónde durante e el él ella ellas ellos en entre era eran es esa ese eso esta está
            están estas este esto estos fue fueron ha había han hasta hay la las le les lo los más me mi
            mientras muy nada ni no nos nosotros o otra otras otro otros para pero poco por porque que qué
            quien quién se sea según ser si sí sin sobre son su sus también tan tanto te tiene tienen todo
            todos tras tu un una uno unos y ya yo
        """,
        "italian": """
            a ad agli ai al alla alle allo anche ancora avere c che chi ci come con contro cosa cui da dagli
            dai dal dalla dalle degli dei del della delle dello di dove e è ed era erano essere fra gli ha
            hanno i il in io l la le lei li lo loro lui ma mi molto negli nei nel nella nelle nello noi non
            o ogni per perché più poi prima qual quale quali quando quanto quella quelle quelli quello
            questa queste questi questo se senza si sia solo sono sopra sotto sua sue sugli sui sul sulla
            sulle suo suoi tra tutti tutto un una uno vi
        """,
        "portuguese": """
            a ao aos apenas após as até cada com como contra da das de dela dele deles desde do dos durante
            e é ela elas ele eles em entre era eram essa esse esta está estão este eu foi foram há isso isto
            já lhe mais mas me mesmo muito na não nas nem no nos nós num numa o onde os ou para pela pelas
            pelo pelos por porque qual quais quando quanto que quem se sem ser seu seus sob sobre sua suas
            também tem têm teve um uma você
        """,
        "dutch": """
            aan al alle als altijd andere bij dan dat de deze die dit doch doen door dus een en er geen haar
            had heb hebben heeft hem het hier hij hoe hoeveel hun ik in is ja je kan kon kunnen maar meer
            men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over te tegen toch
            tot u uit uw van veel voor waar waarom wanneer want waren was wat welke werd wie wij worden
            wordt zal ze zich zij zijn zo zonder zou
        """,
        "swedish": """
            alla allt att av blev bli blir då de dem den denna deras det detta dig din du efter eller en ett
            få för från ha hade han har hennes hon honom hur hur här i icke ingen inom inte jag ju kan kunde
            man med mellan men mer mig min mot mycket när nu och om oss på så samma sedan sig sin sitt
            skulle som till under upp ut utan vad var varför vara varit vem vi vid vilka vilken än är över
        """,
        "russian": """
            а без более был была были было быть в вам вас весь во вот все всего всех вы где да для до его ее
            если есть еще же за здесь и из или им их к как какая какие какой когда кого кто ли меня мне
            много может мы на над не него нее нет ни них но о об он она они оно от по под после почему при
            про с сколько со так также такой там то тоже только том тот ты у уже чем что чтобы эта эти это
            этого этой этот я
        """,
    }.items()
}


def identify_language(text: str) -> str:
    """Return the language of the function words in the beginning of a text; "" where it is not clear.

    Code and tables have few of them, and some that are words of another language by chance.
    """
    words = _WORD.findall(text[:_SAMPLE_CHARACTERS].casefold())
    counts = _count(words)
    (best, most), (_, second) = (*counts.most_common(2), ("", 0), ("", 0))[:2]
    is_clear = most >= max(MIN_FUNCTION_WORDS, _MIN_SHARE * len(words)) and most >= _MIN_LEAD * second
    return best if is_clear else ""


def without_function_words(words: Sequence[str]) -> list[str]:
    """Return the words of a query without the function words of its language; all where none would be left.

    Where several languages may be meant, those of all of them are left out. `words` are in lower case.
    """
    languages = [FUNCTION_WORDS[name] for name in possible_languages(words)]
    kept = [word for word in words if not any(word in known for known in languages)]
    return kept or list(words)


def possible_languages(words: Sequence[str]) -> list[str]:
    """Return the languages of a query with most of its function words; none where it has none."""
    counts = _count(words)
    most = max(counts.values(), default=0)
    return [name for name, count in counts.items() if count == most]


class WordStemmer:
    """The Snowball stemmers, which tell what a word is without its endings. For one thread.

    English words stay as they are: SQLite stems them.
    """

    def __init__(self) -> None:
        self._stemmers: dict[str, Any] = {}
        self._stems: dict[str, dict[str, str]] = {}

    def stem(self, word: str, language: str) -> str:
        """Return the stem of a word in lower case; `language` is one of `FUNCTION_WORDS`, or "" for none."""
        if language in ("", "english"):
            return word
        known = self._stems.setdefault(language, {})
        if (stem := known.get(word)) is None:
            if len(known) >= _MAX_STEMS:
                known.clear()
            stem = known[word] = self._stemmer(language).stemWord(word)
        return stem

    def stems_of(self, text: str, language: str) -> str:
        """Return the stems of the words of a text in lower case that are not their own stems."""
        if language in ("", "english"):
            return ""
        stems = ((word, self.stem(word, language)) for word in _WORD.findall(text))
        return " ".join(stem for word, stem in stems if stem != word)

    def _stemmer(self, language: str) -> Any:
        if language not in self._stemmers:
            import snowballstemmer

            self._stemmers[language] = snowballstemmer.stemmer(language)
        return self._stemmers[language]


def _count(words: Sequence[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for language, known in FUNCTION_WORDS.items():
        if found := sum(word in known for word in words):
            counts[language] = found
    return counts
