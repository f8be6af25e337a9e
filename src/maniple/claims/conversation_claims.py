"""Claims about the conversation: what the user has asked, and what the team has said before.

They are no statements about the world: "You asked whether it cost 221 million euros" is right in any case.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_USER = (
    r"(?:you(?:['’]ve| have| had)?|the user(?: has)?)(?: \w+ly)? (?:asked|said|told|wrote|mentioned|"
    r"gave|stated|specified|requested|named|provided|wanted to know)\b",
    r"your (?:\w+ )?(?:question|request|message|query|prompt)s?\b",
    r"(?:sie|du|ihr) (?:fragte(?:n|st|t)|wollte(?:n|st|t) wissen|erwähnte(?:n|st|t))\b",
    r"(?:haben sie|hast du|habt ihr|sie haben|du hast)\b[^.;:]{0,80}\b(?:gefragt|genannt|"
    r"geschrieben|gesagt|erwähnt)\b",
    r"(?:ihre|ihrer|deine|deiner|eure|eurer) (?:frage|anfrage|nachricht)\b",
    r"(?:vous (?:avez|aviez)|tu (?:as|avais)) (?:demandé|dit|écrit|indiqué|mentionné|donné|précisé)\b",
    r"(?:votre|ta) (?:question|demande)\b|(?:votre|ton) message\b",
    r"(?:usted|ustedes) (?:\w+ )?(?:preguntó|preguntaron|dijo|dijeron|escribió|mencionó|indicó)\b",
    r"(?:preguntaste|dijiste|escribiste|mencionaste|indicaste|tu pregunta|su pregunta)\b",
    r"(?:hai|avete) (?:chiesto|detto|scritto|indicato|menzionato)\b|la (?:tua|vostra) (?:domanda|"
    r"richiesta)\b",
    r"vocês? (?:perguntou|perguntaram|disse|disseram|pediu|escreveu|mencionou|indicou)\b",
    r"(?:a )?(?:sua|tua) pergunta\b",
    r"(?:u|je|jij|jullie) (?:vroeg|vroegen|zei|schreef|noemde)\b|(?:uw|jouw|jullie) vraag\b",
    r"\w+ł[ae]ś\b|(?:twoj\w+|pańsk\w+|państwa) (?:pytani|zapytani)\w+",
    r"(?:вы|ты) (?:спросил|спрашивал|сказал|написал|указал|упомянул)\w*|ваш\w* (?:вопрос|запрос|"
    r"сообщени)\w*",
    r"(?:ви|ти) (?:запитал|питал|сказал|написал|вказал)\w*|ваш\w* (?:запит|повідомлен)\w*",
    r"(?:du|ni) (?:frågade|spurte|spurgte|sade|sagde|skrev|nämnde|nevnte)\b",
    r"(?:din|ditt|dit|er|deres) (?:fråga|spørsmål|spørgsmål)\b",
    r"(?:kysyit|kysyitte|sanoit|sanoitte|kirjoitit)\b|kysymyksesi\b|kysymyksenne\b",
    r"(?:sordunuz|sordun|belirttiniz|yazdınız|sorunuz)\b",
    r"(?:ptal\w* jste se|ptali jste se|zeptali jste se|váš dotaz|vaše otázka)\b",
)
_TEAM = (
    r"(?:i|we)(?:['’]ve|['’]d| have| had)?(?: \w+ly)? (?:said|told you|wrote|reported|gave|stated|"
    r"mentioned|claimed|noted|answered)\b",
    r"(?:my|our) (?:\w+ )?(?:report|answer|reply|response|draft|summary)\b",
    r"(?:ich|wir) (?:sagte|schrieb|nannte|berichtete)n?\b",
    r"(?:mein|unser)\w{0,2} (?:\w+ )?(?:bericht|antwort|entwurf|fassung)\w{0,2}\b",
    r"(?:j['’](?:ai|avais)|nous (?:avons|avions)) (?:\w+ )?(?:dit|écrit|indiqué|donné|répondu)\b",
    r"(?:ma|mon|notre) (?:\w+ )?(?:réponse|rapport|brouillon)\b",
    r"(?:dije|dijimos|escribí|escribimos)\b|(?:mi|nuestr[oa]) (?:\w+ )?(?:informe|respuesta|borrador)\b",
    r"(?:ho|abbiamo) (?:detto|scritto|indicato)\b|(?:mi[ao]|nostr[ao]) (?:\w+ )?(?:risposta|"
    r"rapporto|relazione)\b",
    r"(?:dissemos|escrevemos|escrevi)\b|(?:minha|meu|noss[ao]) (?:\w+ )?(?:resposta|relatório)\b",
    r"(?:mijn|ons|onze) (?:\w+ )?(?:antwoord|rapport|verslag)\b|(?:ik|wij|we) (?:zei|schreef|noemde|"
    r"schreven)\b",
    r"(?:mój|moj\w+|nasz\w*) (?:\w+ )?(?:raport|odpowied)\w*",
    r"(?:мо[йяеё]\w*|наш\w*) (?:\w+ )?(?:отч[её]т|ответ)\w*",
    r"(?:min|mitt|mit|vår|vårt|vores) (?:\w+ )?(?:rapport|svar)\b",
)
_EARLIER = (
    r"(?:earlier|previous|prior|last|first) (?:report|answer|reply|response|draft|version|"
    r"message)\b(?! (?:by|of|from|on|in)\b)",
    r"(?:vorig|früher|vorherig|letzt|erst)e[nrms]? (?:bericht|antwort|entwurf|fassung)\b(?! (?:der|"
    r"des|von|vom|aus)\b)",
    r"(?:rapport|réponse|version|brouillon) précédente?\b(?! (?:du|de|des)\b| d['’])",
    r"(?:informe|respuesta|versión|borrador) anterior\b(?! del?\b)",
    r"(?:rapporto|risposta|relazione|versione|bozza) precedente\b(?! (?:di|del\w*|da\w*)\b)",
    r"(?:relatório|resposta|versão|rascunho) anterior\b(?! d[aoe]s?\b)",
    r"(?:vorige|eerdere|eerste) (?:rapport|verslag|antwoord|versie)\b(?! van\b)",
    r"poprzedni\w* (?:raport|odpowied|wersj)\w*",
    r"(?:предыдущ|прошл|прежн)\w+ (?:отч[её]т|ответ|верси)\w*",
    r"(?:förra|forrige|tidigare|tidligere) (?:rapport|svar)\w*",
    r"önceki (?:rapor|yanıt|cevap)\w*|edellinen (?:raportti|vastaus)|předchozí (?:zpráva|odpověď)",
)
_UNSPACED = (
    r"(?:您|你)们?(?:曾|刚才|之前)?(?:问|問|提到|说|說|要求|询问|詢問|给出|指出)|(?:您|你)的(?:问题|問題|请求|提问|要求)",
    r"ご質問|お尋ね|ご依頼|あなた[がはの]",
    r"(?:질문|말씀|요청|문의)하신|물어보신",
    r"我们?(?:之前|此前|先前|上次|刚才|已)(?:经|經)?(?:说|說|提到|报告|回答|给出|写)|我们?的(?:报告|回答|答复)",
    r"(?:私|当方|我々)の(?:回答|報告)|(?:제|저희) (?:답변|보고서)",
)
_UNSPACED_EARLIER = (
    r"(?:之前|此前|先前|上次|上一[份个]|前一[份个])的?(?:报告|報告|回答|答复|版本)",
    r"(?:前回|以前)の(?:回答|報告)|이전 (?:답변|보고서)",
)


def _compile(spaced: Sequence[str], unspaced: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for text in small letters, which is much faster than one that ignores case."""
    return re.compile(rf"\b(?:{'|'.join(spaced)})|{'|'.join(unspaced)}")


_PERSONAL = _compile((*_USER, *_TEAM), _UNSPACED)
_IMPERSONAL = _compile(_EARLIER, _UNSPACED_EARLIER)
_OPEN_QUOTATION = re.compile(r"[“„«「][^“”»」]*\Z")
_CLAUSE_END = re.compile(
    r"[;:。；：—–]|\.\s|"
    r"[,，、]\s?(?:but|yet|while|whereas|however|though|which|aber|doch|jedoch|sondern|während|mais|"
    r"tandis|alors|"
    r"pero|sino|mientras|ma|mentre|però|mas|porém|enquanto|maar|terwijl|ale|lecz|natomiast|но|"
    r"однако|а|але|men|"
    r"mutta|ancak|但|但是|而|不过|然而)(?![^\W\d_\u3400-\u9fff])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SaidClause:
    """The part of a claim, by the places of its characters, that reports what somebody has said."""

    start: int
    end: int

    def has(self, start: int) -> bool:
        """Whether what begins at a place is said there."""
        return self.start <= start < self.end


def find_said_clauses(text: str, *, has_citation: bool = False) -> list[SaidClause]:
    """Return the clauses of a claim that are about the conversation.

    With a citation, "the previous report" may be that of the source, so that only "my report" is one's own.
    """
    return [*_iterate_clauses(text, has_citation=has_citation)]


def _iterate_clauses(text: str, *, has_citation: bool) -> Iterator[SaidClause]:
    small = text.lower()
    if len(small) != len(text):
        small = text
    for pattern in (_PERSONAL,) if has_citation else (_PERSONAL, _IMPERSONAL):
        for found in pattern.finditer(small):
            before = text[: found.start()]
            if _OPEN_QUOTATION.search(before) or before.count('"') % 2:
                continue  # it is somebody else who speaks
            ends = (one.start() for one in _CLAUSE_END.finditer(text, found.end()))
            begins = (one.end() for one in _CLAUSE_END.finditer(text, 0, found.start()))
            yield SaidClause(max(begins, default=0), next(ends, len(text)))
