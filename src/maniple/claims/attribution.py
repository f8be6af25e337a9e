"""Who is said to have said it: sources that a claim names, and the speakers of its quotations."""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from maniple.claims.context import ClaimContext
from maniple.claims.passages import IndexedPassage
from maniple.claims.source_index import SourceIndex
from maniple.claims.terms import find_terms
from maniple.claims.verdict import Verdict
from maniple.evidence.negation import has_negation
from maniple.evidence.reasons import ReasonCode, explain, name_sources
from maniple.evidence.speech import SAYS
from maniple.evidence.wording import Quotation, searchable

LEAST_QUOTED = 12
"""Characters of a quotation whose speaker is compared."""
_NAME = (
    r"(?:(?:the|The|der|die|das|le|la|les|l['’]|el|il|lo|o|a|de|het)\s?)?"
    r"([A-ZÀ-ÞА-Я][\w.&'’-]*(?:\s[A-ZÀ-ÞА-Я][\w.&'’-]*){0,4})"
)
_ACCORDING = re.compile(
    rf"\b(?:[Aa]ccording to|[Aa]s reported by|[Ll]aut|[Nn]ach Angaben (?:von|der|des)|[Ss]elon|"
    rf"[Dd]['’]après|[Ss]egún|"
    rf"[Ss]econdo|[Ss]egundo|[Vv]olgens|[Pp]er)\s{_NAME}"
)
_REPORTS = re.compile(
    rf"(?:\A|[.;,]\s){_NAME}\s(?:reports?|reported|writes|wrote|states|stated|notes|noted|puts|gives|"
    rf"berichtet\w*|schreibt|"
    r"nennt|rapporte|écrit|indique|informa|reporta|riporta|scrive|schrijft|meldt)\b"
)
_QUOTED = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』]{8,600})[\"”“»」』]")
_ELLIPSIS = re.compile(r"\[?\(?(?:…|\.\s?\.\s?\.)\)?\]?")
_SENTENCE_END = re.compile(r"[.!?。！？…][\s\"”»」』]*\Z")
_NAME_BEFORE = re.compile(
    r"(?:([A-ZÀ-ÞА-Я][\w.'’-]*)\s(?:(?:has|had|hat|hatte|a|avait|ha|aveva|heeft)\s)?|"
    r",\s([A-ZÀ-ÞА-Я][\w.-]*(?:\s[A-ZÀ-ÞА-Я][\w.-]*){1,4}),\s)\Z"
)
"""Who speaks, before the verb: a name, or one in apposition such as "The mayor, Ada Holm, said"."""
_NAME_BEHIND = re.compile(
    r"\s(?:(?:the|der|die|das|le|la|el|il|o|de|het)\s)?(?:[^\W\d_A-ZÀ-ÞА-Я][\w’'-]{4,}\s){0,3}"
    r"((?:[A-ZÀ-ÞА-Я][\w.'’-]*\s?){1,5})"
)
"""Who speaks, with a role: "said chief executive Ingrid Solberg". Shorter words are prepositions."""
_IS_INVERTED = re.compile(r"(?:\A|[,\"“”„«»?!—–-])\s*(?:(?:a|ha|hat)\s)?\Z")
_TELLS = re.compile(r"t[eo]ll?", re.IGNORECASE)
_WHOLE_CLAUSE = re.compile(
    r"\s*(?:[;:]|,\s*(?:and|but|or|und|aber|oder|sondern|et|mais|ou|y|pero|e|ma|mas|en|maar|и|но|а)\b).*"
    r"[,;:—–][\s\"“”„«»]*",
    re.DOTALL,
)
"""What an ellipsis leaves out: ", and I will not deny it," takes its negation along; ", but not" does not."""
_TOP_DOMAINS = frozenset(
    [
        "com",
        "org",
        "net",
        "gov",
        "edu",
        "co",
        "ac",
        "www",
        "int",
        "info",
        "eu",
        "io",
        "uk",
        "de",
        "fr",
        "es",
        "it",
        "nl",
        "cn",
        "jp",
        "kr",
        "ru",
        "us",
        "ch",
        "at",
    ]
)


def find_source_labels(title: str, url: str) -> frozenset[str]:
    """Return the names by which a text may call a source: its host, and the publisher in its title."""
    host = (urlsplit(url).hostname or "").casefold()
    words = {part for part in host.split(".") if part not in _TOP_DOMAINS and len(part) > 2}
    publisher = re.split(r"\s[|–—-]\s", title)
    names = {_squeeze(publisher[-1])} if len(publisher) > 1 and len(publisher[-1]) <= 40 else set[str]()
    return frozenset(words | names)


def check_named_source(context: ClaimContext, labels: dict[int, frozenset[str]]) -> Verdict | None:
    """Return a verdict if a claim names a source of the run but cites one that does not mention it."""
    if not context.has_citation:
        return None
    for name in _find_named(context.claim.text):
        squeezed = _squeeze(name)
        owners = [number for number, known in labels.items() if squeezed in known]
        if not owners or set(owners) & set(context.claim.citations):
            continue
        if any(_mentions(index, name) for index in context.cited):
            continue
        cited = name_sources(index.number for index in context.cited)
        reasons = explain(ReasonCode.NAMED_SOURCE, name=name, source=f"[{owners[0]}]", cited=cited)
        return Verdict("contradicted", reasons)
    return None


def _find_named(text: str) -> Iterator[str]:
    for pattern in (_ACCORDING, _REPORTS):
        for found in pattern.finditer(text):
            yield found[1].rstrip(".'’")


def _squeeze(name: str) -> str:
    return re.sub(r"\W|(?<=\w)['’]s\b", "", name).casefold()


def _mentions(index: SourceIndex, name: str) -> bool:
    terms = find_terms(name)
    return not terms or all(map(index.knows, terms))


def check_quotations(context: ClaimContext) -> Iterator[Verdict]:
    """Yield verdicts on quotations of the cited sources with another speaker, or without their negation."""
    for found in _QUOTED.finditer(context.claim.text):
        if len(found[1]) >= LEAST_QUOTED:
            rest = context.claim.text[: found.start()] + " , " + context.claim.text[found.end() :]
            for index in context.cited:
                yield from _check_speaker(rest, found[1], index)
                yield from _check_ellipsis(found[1], index)


def _check_speaker(rest: str, quoted: str, index: SourceIndex) -> Iterator[Verdict]:
    place = _find_quoted(quoted, index)
    names = index.find_names(rest)
    if place is None or not names or not SAYS.search(rest):
        return
    one = index.passages[place]
    speakers, near = _find_speakers(one.passage.text, index), [one]
    if speakers is None and place and not SAYS.search(one.passage.text):
        near = index.passages[place - 1 : place + 2]
        speakers = _find_speakers(near[0].passage.text, index)
    if not speakers or any(names & line.terms for line in near) or names & index.title_terms:
        return
    # The one who is named speaks elsewhere in the same source, so this is not another form of the name.
    if all(map(index.knows, names)):
        yield Verdict("contradicted", explain(ReasonCode.OTHER_SPEAKER, source=index.label), one.passage)


def _find_speakers(text: str, index: SourceIndex) -> frozenset[str] | None:
    """Return the names of those who speak in a sentence; None if one of them has no name in it.

    "She told Peter Holm" names the one who is told, and "said the head of the mine" nobody.
    """
    found = list[frozenset[str]]()
    for verb in SAYS.finditer(text):
        before, behind = text[: verb.start()], text[verb.end() :]
        named = _NAME_BEFORE.search(before)
        if named is None and _IS_INVERTED.search(before) and not _TELLS.match(verb[0]):
            named = _NAME_BEHIND.match(behind)
        found.append(index.find_names(f"x {named[named.lastindex or 0]}") if named else frozenset())
    return frozenset[str]().union(*found) if found and all(found) else None


def _find_quoted(quoted: str, index: SourceIndex) -> int | None:
    """Return the place of the passage that has a quotation, or its longest part."""
    part = max(_ELLIPSIS.split(quoted), key=len).strip()
    terms = find_terms(part)
    if not terms:
        return None
    wanted = Quotation.of(part)
    for _, one in index.find_similar(terms, most=3):
        if wanted.occurs_in(searchable(one.passage.text)):
            return index.place_of(one)
    return None


def _check_ellipsis(quoted: str, index: SourceIndex) -> Iterator[Verdict]:
    parts = _ELLIPSIS.split(quoted)
    place = _find_quoted(quoted, index) if len(parts) > 1 else None
    if place is None:
        return
    one = index.passages[place]
    for omitted in _find_omitted(parts, one):
        if has_negation(omitted, with_denials=False):
            yield Verdict("contradicted", explain(ReasonCode.LOST_NEGATION), one.passage)
            return


def _find_omitted(parts: Sequence[str], one: IndexedPassage) -> Iterable[str]:
    """Yield what a sentence has between the parts of a quotation, or before an ellipsis at its beginning."""
    text, at = one.passage.text.casefold(), 0
    for place, whole in enumerate(parts):
        part = whole.strip(" ,.")
        if not part:
            continue
        start = text.find(part.casefold(), at)
        if start < 0:
            return
        if place:
            between, before = text[at:start], parts[place - 1].strip()
            # Sentences and clauses that are left out as a whole say something of their own.
            is_whole = _SENTENCE_END.search(before) and _SENTENCE_END.search(between)
            if not is_whole and not _WHOLE_CLAUSE.fullmatch(between):
                yield between if before else re.split(r"[,;:\"“„«]", between)[-1]
        at = start + len(part)
