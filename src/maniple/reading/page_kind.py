"""Judges what a page is: content, or a wall, a soft 404 or an error page in its place.

The judgement needs several signs, and the more text a page has that speaks of other things, the more of them.
No phrase decides alone about a page with text, so that an article about error pages stays an article.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from maniple.reading.wall_phrases import (
    EXPLAINING,
    OBSTACLES,
    ObstacleKind,
    ObstaclePhrases,
    normalize_phrase,
)
from maniple.reading.wall_structure import find_structural_obstacle

if TYPE_CHECKING:
    from lxml.html import HtmlElement

ContentKind = Literal["article", "documentation", "list", "forum", "product", "table"]
PageKind = Literal[ContentKind, ObstacleKind]

_DESCRIPTIONS: dict[ObstacleKind, str] = {
    "bot check": "The page shows a check for robots instead of its content (bot check).",
    "login wall": "The page shows a login form instead of its content (login wall).",
    "cookie wall": "The page asks for consent to cookies instead of showing its content (cookie wall).",
    "paywall": "The page shows an offer for subscribers instead of its content (paywall).",
    "region block": "The site does not show this page in this region (region block).",
    "age gate": "The page asks for the reader's age instead of showing its content (age gate).",
    "not found": "The site answers that it has no such page (not found).",
    "error page": "The page is an error message of its site (error page).",
    "empty shell": "The page is empty without its scripts (empty shell); it needs a browser.",
    "catch-all page": "The site shows this page for any address, even for one that cannot exist "
    "(catch-all page); a login or a browser may be needed.",
}
NOT_A_SOURCE = "It is not a source and has no number; use another page."
_ARTICLE_TYPES = re.compile(
    r"(?:News|Blog|Scholarly|Medical|Report|Tech|Opinion|Review)?(?:Article|Posting)$"
)
_TYPED_KINDS: dict[str, ContentKind] = {
    "Product": "product",
    "ProductGroup": "product",
    "DiscussionForumPosting": "forum",
    "QAPage": "forum",
    "TechArticle": "documentation",
    "APIReference": "documentation",
    "ItemList": "list",
    "CollectionPage": "list",
    "SearchResultsPage": "list",
    "Dataset": "table",
}
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(\w{1,60})"')
_GENERATORS = re.compile(
    r"sphinx|mkdocs|docusaurus|asciidoc|docutils|vuepress|vitepress|gitbook|hugo-book|rustdoc|mdbook|docbook"
    r"|gtk-doc|gi-docgen|doxygen|javadoc|jsdoc|typedoc|yard\b|rdoc|antora|docfx|dita|texinfo|makeinfo|texi2html"
    r"|latex2html|tex4ht|hevea|starlight|docsify|nextra|slate\b|groff|man2html|mandoc|exdoc|scaladoc|dokka|pdoc",
    re.I,
)
_FORUMS = re.compile(r"discourse|phpbb|vbulletin|xenforo|mybb|flarum|nodebb|smf\b", re.I)
_NO_TEXT = {
    "script",
    "style",
    "template",
    "svg",
    "head",
    "select",
    "option",
    "noscript",
    "code",
    "pre",
    "samp",
    "kbd",
}
_QUOTING = {"blockquote", "q"}
_LABELS = {"a", "button", "label"}
_HEADINGS = {"h1", "h2"}
_BLOCKS = {
    "address", "article", "aside", "body", "br", "dd", "div", "dl", "dt", "fieldset", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "section", "table", "td",
    "th", "tr", "ul",
}  # fmt: skip
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
_MAX_ELEMENTS = 20_000
_MOST_TEXT = 8_000
"""Characters of prose from which a page has content of its own."""
_MARKUP_CHARACTERS = 300_000
_HEADING_CHARACTERS = 160
_MAX_HEADINGS = 3
_SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_QUOTED = re.compile(
    r"“[^”]{3,200}”|\"[^\"\n]{3,200}\"|«[^»]{3,200}»|„[^“”]{3,200}[“”]|「[^」]{2,200}」|『[^』]{2,200}』"
)
_LABEL = re.compile(
    r"\*?\[\d{1,6}\]<[^<>]{0,300}>([^<>]{0,300})(?:</\w{0,20}>)?|!?\[([^\[\]]{0,300})\]\([^()]{0,2000}\)"
)
_PASSWORD_FIELD = re.compile(r"\[\d{1,6}\]<input password\b")
_IDEOGRAPH = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
_TITLE_PARTS = re.compile(r"\s+[-–—|·•:»«/]+\s+|\s*[|·•»«]\s*|:\s+|[_＿]")
_DECORATION = re.compile(r"^(?:[^\w§]|_)+|[^\w.!?]+$")
_LIMITS = ((250, 2), (700, 3), (1_500, 4), (3_000, 5))
"""Up to how many characters of other text how many points make a page an obstacle."""
_PHRASE = 2
"""The points of a phrase; two of them decide about a page with a paragraph of other text."""
_FORM_CHARACTERS = 40
_SHELL_LABELS = 60
_LONG_PROSE = 1_500
_TABLE_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class PageOutline:
    """What a page shows, as far as the judgement needs it."""

    title: str
    headings: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    """Its text outside of links, buttons, headings, quotations and code."""
    labels: str = ""
    """The text of its links and buttons."""
    noscript: str = ""
    """What it shows without scripts."""
    markup: str = ""
    """Its HTML, in lower case, cut."""
    status: int | None = None
    """The HTTP status, if it is known to be another one than 200."""
    is_article: bool = False
    """Whether its metadata says that it is an article."""
    is_long: bool = False
    """Whether it has more text than `sentences`."""
    structure: ObstacleKind | None = None
    """What it is by its structure, whatever its words are."""


@dataclass(frozen=True, slots=True)
class _Score:
    points: int
    rest: int
    """Characters of the sentences that do not match."""


@dataclass(frozen=True, slots=True)
class _Signs:
    title: int
    sentences: int
    more: bool
    mark: bool


def is_obstacle(kind: str) -> bool:
    """Whether a page of this kind has no content that can be a source."""
    return kind in get_args(ObstacleKind)


def describe_obstacle(kind: str) -> str:
    """Return sentences for the reader of a page; "" for a kind with content."""
    return f"{_DESCRIPTIONS[kind]} {NOT_A_SOURCE}" if kind in _DESCRIPTIONS else ""  # type: ignore[index]


def outline_page(page: "HtmlElement", title: str, markup: str) -> PageOutline:
    """Return the outline of a page that was not pruned; `markup` is its HTML. Linear."""
    text = _TextCollector()
    body = page.find(".//body")
    text.collect(page if body is None else body)
    noscript = " ".join("".join(one.itertext()) for one in page.xpath("(//noscript)[position() <= 5]"))
    headings, sentences = tuple(text.headings), tuple(text.sentences())
    labels = " ".join(text.labels)[:_MOST_TEXT]
    prose = _MOST_TEXT if text.is_full else sum(map(_width, sentences))
    return PageOutline(
        title=title,
        headings=headings,
        sentences=sentences,
        labels=labels,
        noscript=normalize_phrase(re.sub("<[^<>]{0,500}>", " ", noscript[:2_000])),
        markup=markup[:_MARKUP_CHARACTERS].lower(),
        is_article=_is_marked_article(page),
        is_long=text.is_full,
        structure=find_structural_obstacle(page, title, headings, prose, len(labels)),
    )


def outline_text(title: str, text: str, status: int | None = None) -> PageOutline:
    """Return the outline of a page of which only its visible text is known, such as one in a browser.

    `text` may be plain, Markdown, or with controls as `[33]<button>Send</button>`.
    """
    seen = text[:_MOST_TEXT]
    headings: list[str] = []
    prose: list[str] = []
    for line in seen.splitlines():
        stripped = _LABEL.sub(_label_text if _is_prose_around(line) else " ", line).strip()
        is_first = not headings and not prose
        if line.lstrip().startswith("#") or (is_first and 0 < len(stripped) < _HEADING_CHARACTERS):
            headings.append(stripped.strip("# "))
        else:
            prose.append(stripped)
    return PageOutline(
        title=title,
        headings=tuple(headings[:_MAX_HEADINGS]),
        sentences=tuple(_split_sentences("\n".join(prose))),
        labels=normalize_phrase(" ".join(match[1] or match[2] or "" for match in _LABEL.finditer(seen))),
        markup="<input type=password>" if _PASSWORD_FIELD.search(seen) else "",
        status=status,
        is_long=len(text) > _MOST_TEXT,
    )


def _is_prose_around(line: str) -> bool:
    return any(map(str.isalnum, _LABEL.sub("", line)))


def _label_text(match: re.Match[str]) -> str:
    return match[1] or match[2] or ""


def find_obstacle(outline: PageOutline) -> ObstacleKind | None:
    """Return what the page shows instead of content; None for a page with content."""
    found = None if outline.is_long else _find_best(outline) or outline.structure
    if found is None and outline.status is not None and outline.status >= 400:
        prose = sum(map(_width, outline.sentences))
        # Some sites answer 404 and let their scripts show the page all the same.
        if outline.status >= 500 or (prose < _LONG_PROSE and not outline.is_long):
            return "not found" if outline.status in (404, 410) else "error page"
    return found


def _find_best(outline: PageOutline) -> ObstacleKind | None:
    best: ObstacleKind | None = None
    most = 0
    for kind, phrases in OBSTACLES.items():
        score = _score(kind, phrases, outline)
        if score.rest <= phrases.most_rest and score.points > most and _is_enough(score):
            best, most = kind, score.points
    return best


def _is_enough(score: _Score) -> bool:
    return any(score.rest <= rest and score.points >= points for rest, points in _LIMITS)


def _score(kind: ObstacleKind, phrases: ObstaclePhrases, outline: PageOutline) -> _Score:
    others = [one for one in outline.sentences if _find_phrase(phrases, one) is None]
    rest = sum(map(_width, others))
    signs = _Signs(
        _count_titles(phrases, outline),
        _count_sentences(phrases, outline),
        phrases.more is not None
        and any(phrases.more.search(one) for one in (*outline.sentences, outline.labels, outline.noscript)),
        phrases.mark is not None and bool(phrases.mark.search(outline.markup)),
    )
    if not _has_needed_sign(kind, outline, signs, rest):
        return _Score(0, rest)
    points = signs.title + signs.sentences + signs.more + _mark_points(kind, signs.mark, rest)
    if outline.status is not None and outline.status >= 400:
        points += 1
    talk = len({found for one in others for found in EXPLAINING.findall(one)})
    points -= min(talk, 2)
    if outline.is_article and kind in ("bot check", "not found", "error page", "empty shell"):
        points -= 1
    return _Score(points, rest)


def _has_needed_sign(kind: ObstacleKind, outline: PageOutline, signs: "_Signs", rest: int) -> bool:
    """Whether there is a sign without which a page is never of this kind."""
    match kind:
        case "empty shell":
            is_small = len(outline.labels) < _SHELL_LABELS
            return is_small and "<script" in outline.markup and signs.sentences > 0
        case "login wall":
            is_form = signs.title + signs.sentences > 0 or (signs.more and rest < _FORM_CHARACTERS)
            is_asked = signs.title > 0 or signs.more or signs.sentences > _PHRASE or rest < _FORM_CHARACTERS
            return (signs.mark and is_form) or (signs.sentences > 0 and is_asked)
        case "not found":
            return signs.sentences > 0 or (signs.title > 0 and (signs.more or rest < 3 * _FORM_CHARACTERS))
        case "bot check":
            return signs.sentences > 0 or rest < _FORM_CHARACTERS
        case "age gate":
            return signs.sentences > 0 and (signs.title > 0 or signs.more or signs.sentences > _PHRASE)
        case "cookie wall" | "paywall":
            # The title alone may be that of a recipe, of a policy, or of a newsletter to subscribe to.
            is_dialog = signs.more or rest < _FORM_CHARACTERS
            is_marked = signs.mark and kind == "paywall"
            return signs.sentences > 0 or is_marked or (signs.title > 0 and is_dialog)
        case "error page":
            return signs.title > 0 or signs.mark or signs.sentences > _PHRASE
        case _:
            return signs.title + signs.sentences > 0


def _mark_points(kind: ObstacleKind, mark: bool, rest: int) -> int:
    if not mark:
        return 0
    # Scripts of these services are on their customers' honest pages, too.
    return 1 if kind == "bot check" and rest >= _FORM_CHARACTERS else _PHRASE


def _width(sentence: str) -> int:
    """Return the length of a sentence; an ideograph says about as much as three letters."""
    return len(sentence) + 2 * len(_IDEOGRAPH.findall(sentence))


def _count_sentences(phrases: ObstaclePhrases, outline: PageOutline) -> int:
    """Return 2 for a phrase, and 1 for each further one, at most 4."""
    texts = (*outline.sentences, outline.noscript)
    hits = set(filter(None, (_find_phrase(phrases, one) for one in texts)))
    return min(_PHRASE + len(hits) - 1, 2 * _PHRASE) if hits else 0


def _find_phrase(phrases: ObstaclePhrases, sentence: str) -> str | None:
    """Return the phrase in a sentence that speaks to the reader, and not about such pages."""
    match = phrases.sentences.search(sentence)
    if match is None or EXPLAINING.search(f"{sentence[: match.start()]} {sentence[match.end() :]}"):
        return None
    return match[0]


def _count_titles(phrases: ObstaclePhrases, outline: PageOutline) -> int:
    """Return 2 if the title or a heading as a whole is such a statement, 3 if both are."""
    of_title = _is_statement(phrases, outline.title)
    of_heading = any(_is_statement(phrases, one) for one in outline.headings)
    return 3 if of_title and of_heading else 2 if of_title or of_heading else 0


def _is_statement(phrases: ObstaclePhrases, title: str) -> bool:
    whole = normalize_phrase(title[:_HEADING_CHARACTERS])
    pieces = [whole, whole.replace(":", ""), *_TITLE_PARTS.split(whole)[:5]]
    return any(phrases.title.fullmatch(_DECORATION.sub("", one)) for one in pieces if one)


class _TextCollector:
    """Collects the texts of the visible elements of a page, until it has enough of them."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.labels: list[str] = []
        self.is_full = False
        self._prose: list[str] = []
        self._characters = 0

    def collect(self, body: "HtmlElement") -> None:
        """Collect the texts in `body`, each with the role of its innermost element that has one."""
        import lxml.etree

        roles: dict[HtmlElement, str] = {}
        for count, (event, element) in enumerate(lxml.etree.iterwalk(body, events=("start", "end"))):
            if self._characters > _MOST_TEXT or count > 2 * _MAX_ELEMENTS:
                self.is_full = True
                return
            outer = roles.get(element.getparent(), "prose")
            if element.tag in _BLOCKS:
                self._prose.append("\n")
            if event == "end":
                if element is not body:
                    self._add(element.tail, outer)
                continue
            role = roles[element] = _role_of(element, outer)
            if role == "heading" and outer != "heading" and len(self.headings) < _MAX_HEADINGS:
                self.headings.append(" ".join(element.text_content().split())[:_HEADING_CHARACTERS])
            self._add(element.text, role)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the prose, normalized."""
        return _split_sentences("".join(self._prose))

    def _add(self, text: str | None, role: str) -> None:
        if not text or not (stripped := text.strip()):
            return
        if role == "prose":
            self._prose.append(f" {stripped}")
            self._characters += len(stripped)
        elif role == "quoted":
            # Not read, but content.
            self._prose.append(f" {'·' * len(stripped)}")
            self._characters += len(stripped)
        elif role == "label":
            self.labels.append(normalize_phrase(stripped))


def _role_of(element: "HtmlElement", outer: str) -> str:
    if outer != "prose":
        return outer
    tag = element.tag
    if tag in _NO_TEXT or _is_hidden(element):
        return "none"
    if tag in _QUOTING:
        return "quoted"
    if tag in _LABELS or element.get("role") == "button":
        return "prose" if tag == "a" and _is_in_sentence(element) else "label"
    return "heading" if tag in _HEADINGS else "prose"


def _is_in_sentence(link: "HtmlElement") -> bool:
    parent = link.getparent()
    before = parent.text if parent is not None else ""
    return any(map(str.isalnum, f"{before or ''}{link.tail or ''}"))


def _is_hidden(element: "HtmlElement") -> bool:
    if element.tag in ("body", "main", "article"):
        return False
    style = element.get("style")
    return "hidden" in element.attrib or bool(style and _HIDDEN.search(style.lower()))


def _split_sentences(text: str) -> Iterator[str]:
    quoted = _QUOTED.sub(lambda match: "·" * len(match[0]), text)
    for one in _SENTENCE_ENDS.split(quoted):
        if sentence := normalize_phrase(one):
            yield sentence


def _is_marked_article(page: "HtmlElement") -> bool:
    if page.xpath(
        "boolean(//meta[@property='og:type'][@content='article']|//meta[@property='article:published_time'])"
    ):
        return True
    return any(_ARTICLE_TYPES.match(name) for name in _structured_types(page))


def _structured_types(page: "HtmlElement") -> Iterator[str]:
    for script in page.xpath("(//script[@type='application/ld+json'])[position() <= 10]"):
        yield from _TYPE.findall((script.text or "")[:_MARKUP_CHARACTERS])


def find_declared_kind(page: "HtmlElement") -> ContentKind | None:
    """Return what kind of content the metadata of a page declares; None if it does not."""
    for name in _structured_types(page):
        if name in _TYPED_KINDS:
            return _TYPED_KINDS[name]
    generator = " ".join(page.xpath("//meta[@name='generator']/@content"))
    if _GENERATORS.search(generator) or page.xpath("boolean(//script[@id='documentation_options'])"):
        return "documentation"
    return "forum" if _FORUMS.search(generator) else None


def find_content_kind(markdown: str, *, is_list: bool) -> ContentKind:
    """Return what kind of content a page has that declares none; `markdown` is what was read of it."""
    if _table_share(markdown.splitlines()) > _TABLE_SHARE:
        return "table"
    return "list" if is_list else "article"


def _table_share(lines: Iterable[str]) -> float:
    of_tables = total = 0
    for line in lines:
        total += len(line)
        of_tables += len(line) if line.startswith("|") else 0
    return of_tables / total if total else 0.0
