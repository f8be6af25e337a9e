"""Conversion of web pages to Markdown."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, truncation_note
from maniple.reading.encoding import decode_text
from maniple.reading.lists import find_list_part, is_list_page
from maniple.reading.lossless import escape_pipes, preserve_structures
from maniple.reading.page_kind import (
    ContentKind,
    find_content_kind,
    find_declared_kind,
    find_obstacle,
    outline_page,
)
from maniple.reading.page_state import find_state_text
from maniple.reading.pagination import Pagination, find_pagination
from maniple.reading.publication import Publication, find_publication
from maniple.reading.readability import empty_element, find_readable_part
from maniple.reading.wall_phrases import ObstacleKind
from maniple.reading.whole_part import choose_part, find_whole_part
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from bs4 import Tag
    from lxml.html import HtmlElement

# Long runs of blanks and endless tags have no content, but take the libraries quadratic time.
_BLANKS = re.compile(r"\s{100,}")
_LEAST_BODY = 200
_MAX_TEXTS = 500
_LINK = re.compile(r"\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
_HEAD_CHARACTERS = 5_000
_PAGE_LANGUAGE = re.compile(
    r"<html\b[^<>]{0,1000}?\s(?:xml:)?lang\s*=\s*[\"']?([a-z]{2,3}(?:[-_]\w{2,8}){0,2})\b", re.IGNORECASE
)
_ENDLESS_TAG = re.compile(r"<[^<>]{20000,}>")


def read_html(text: str, url: str) -> MarkdownDocument:
    """Return the readable part of the page `text` from `url`; may take seconds."""
    text = _ENDLESS_TAG.sub("", _BLANKS.sub("\n", text))
    # This tree is released before the next one is parsed: a tree of 5 MB of tags takes 250 MB.
    about = _read_metadata(parse_html(text), url, text)
    reading = _read_content(text, url, about)
    if about.obstacle in (None, "empty shell") and len(_LINK.sub("", reading.markdown)) < _LEAST_BODY:
        # Scripts would show the page, from a state that is often delivered with it.
        state = find_state_text(parse_html(text))
        if len(state) >= _LEAST_BODY:
            reading = _make_plain(about.title, state)
            return replace(reading, kind=about.declared_kind or "article", **asdict(about.publication))
    if about.obstacle is not None:
        shown = reading.markdown or _read_plain_text(parse_html(text))
        return replace(reading, markdown=shown, kind=about.obstacle)
    kind = about.declared_kind or find_content_kind(reading.markdown, is_list=about.is_list)
    return replace(reading, kind=kind, **asdict(about.publication))


def _read_content(text: str, url: str, about: "_PageMetadata") -> MarkdownDocument:
    title, base, body = about.title, about.base, about.article_body
    is_front = urlsplit(url).path in ("", "/")
    if about.declared_kind == "documentation":
        part = find_whole_part(_parse_content(text), is_declared=True)
    elif about.is_list and not is_front:
        part = find_list_part(_parse_content(text), about.pagination)
    else:
        is_known = bool(about.publication.author)
        part = find_readable_part(lambda: _parse_content(text), title, is_front, drops_byline=is_known)
        if not (is_front or is_known or about.publication.published):
            part = choose_part(part, find_whole_part(_parse_content(text), is_declared=False))
    if about.is_list:
        other = about.pagination
    elif is_front:
        other = about.pagination.without({link.get("href", "") for link in part.iter("a")})
    else:
        other = about.pagination.select_parts(url)
    _insert_pagination(part, other)
    reading = _convert(part, title, base)
    # Otherwise the page is rendered by scripts, and its HTML contains only the parts around the article.
    if len(body) < _LEAST_BODY or len(body) < 2 * len(_LINK.sub("", reading.markdown)):
        return reading
    return _make_plain(title, body)


def _make_plain(title: str, body: str) -> MarkdownDocument:
    note = "" if len(body) <= MAX_CHARACTERS else truncation_note(MAX_CHARACTERS)
    return MarkdownDocument(title, body[:MAX_CHARACTERS], headed=False, note=note)


def read_fragment(source: str, title: str, base: str) -> MarkdownDocument:
    """Return HTML without boilerplate as Markdown, such as that of a feed or a Word document."""
    return _convert(_parse_content(source), title, base)


def _parse_content(text: str) -> "HtmlElement":
    page = parse_html(text)
    preserve_structures(page)
    return page


def _convert(part: "HtmlElement", title: str, base: str) -> MarkdownDocument:
    is_complete = truncate_tree(part, MAX_CHARACTERS)
    simplify_structure(part)
    escape_pipes(part)
    clean_attributes(part, base)
    return MarkdownDocument(
        title, to_markdown(part), note="" if is_complete else truncation_note(MAX_CHARACTERS)
    )


@dataclass(frozen=True, slots=True)
class _PageMetadata:
    title: str
    base: str
    """The base of relative addresses."""
    article_body: str
    """The article in the structured data; empty if there is none."""
    pagination: Pagination
    is_list: bool
    """Whether the page is a list or a table of entries, not an article."""
    obstacle: ObstacleKind | None
    """What the page shows instead of content."""
    declared_kind: ContentKind | None
    publication: Publication


def _read_metadata(page: "HtmlElement", url: str, text: str) -> _PageMetadata:
    """Return what is known of `page`, parsed from `text`, before it is read; `page` is pruned."""
    title, base, article_body = find_title(page), find_base_url(page, url), find_article_body(page)
    obstacle, declared_kind = find_obstacle(outline_page(page, title, text)), find_declared_kind(page)
    publication = find_publication(page, url, title)
    pagination = find_pagination(page, base)
    is_list = is_list_page(page, pagination)
    return _PageMetadata(title, base, article_body, pagination, is_list, obstacle, declared_kind, publication)


def _read_plain_text(page: "HtmlElement") -> str:
    """Return the visible text of a page with little of it, such as a dialog that the reading left out."""
    for element in page.xpath("//script|//style|//template|//head"):
        empty_element(element)
    pieces = (" ".join(text.split()) for text in islice(page.itertext(), _MAX_TEXTS))
    return "\n\n".join(filter(None, pieces))


def _insert_pagination(part: "HtmlElement", pagination: Pagination) -> None:
    """Insert the links to the other pages before the text, where no limit of length cuts them off."""
    from lxml import html

    if not pagination.links:
        return
    line = html.Element("p")
    line.text, line.tail, part.text = "Other pages: ", part.text, None
    for link in pagination.links:
        anchor = html.Element("a")
        anchor.text, anchor.tail = link.label, " "
        if link.address:
            anchor.set("href", link.address)
        else:
            anchor.tail = " (no address; a browser can open it) "
        line.append(anchor)
    part.insert(0, line)


def parse_html(text: str) -> "HtmlElement":
    """Return the parsed document without comments; an empty text gives an empty document."""
    from lxml import html

    # huge_tree: without it, the parser stops at 256 levels and loses the rest of the page.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    # The tag is added because the parser returns no document for an empty page.
    page = html.document_fromstring(f"<html>{text}".encode("utf-8", "replace"), parser=parser)
    # The attributes of the page's own tag are lost behind the added one.
    if match := _PAGE_LANGUAGE.search(text, 0, _HEAD_CHARACTERS):
        page.set("lang", match[1])
    return page


def find_base_url(page: "HtmlElement", url: str) -> str:
    """Return the base of relative addresses in `page`, whose own address is `url`."""
    return resolve_url(url, page.xpath("string(//base/@href)")) or url


def resolve_url(base: str, target: str) -> str | None:
    """Return the address `target` relative to `base` as an absolute one; None if it is invalid."""
    try:
        return urljoin(base, target.strip())
    except ValueError:
        return None


def find_title(page: "HtmlElement") -> str:
    """Return the title of `page`, at most 300 characters; "" if it has none."""
    for path in ("string(//title)", "string(//meta[@property='og:title']/@content)", "string(//h1)"):
        if title := " ".join(page.xpath(path).split()):
            return title[:300]
    return ""


_PRESERVED = {"href", "src", "alt", "colspan", "rowspan", "start"}
# The attributes in which pages with lazy loading put the address; `src` is a placeholder then.
_LAZY_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-srcset")
# The cost of an element for the converter, in characters.
_ELEMENT_COST = 16


def clean_attributes(root: "HtmlElement", base: str) -> None:
    """Make the addresses of links and images absolute.

    Addresses that are not http or https are removed, and so are repeated images.
    """
    seen: set[str] = set()
    for element in list(root.iter()):
        if element.tag == "img":
            _find_source(element)
        preserved = _PRESERVED | {"class"} if element.tag in ("pre", "code") else _PRESERVED
        attributes = {name: value for name, value in element.attrib.items() if name in preserved}
        element.attrib.clear()
        element.attrib.update(attributes)
        for name in ("href", "src"):
            if name in element.attrib:
                _make_absolute(element, name, base)
        if element.tag == "img":
            url = element.get("src", "")
            if not url or url in seen:
                element.clear(keep_tail=True)
                element.tag = "span"
            seen.add(url)


def truncate_tree(root: "HtmlElement", characters: int) -> bool:
    """Remove everything after the first `characters` of `root`; return whether nothing was removed.

    An element counts as sixteen characters, so that a page that consists only of tags is limited, too.
    """
    total = 0
    for element in root.iter():
        total += _ELEMENT_COST + len(element.text or "") + len(element.tail or "")
        if total > characters:
            _drop_after(element, root)
            return False
    return True


def _find_source(image: "HtmlElement") -> None:
    late = [
        value
        for name in _LAZY_SOURCES
        if (value := image.get(name, "").strip()) and not value.startswith("data:")
    ]
    if not image.get("src", "").strip() or image.get("src", "").startswith("data:"):
        late.append(image.get("srcset", "").strip())
    if late and late[0]:
        image.set("src", late[0].split(maxsplit=1)[0].rstrip(","))


def _make_absolute(element: "HtmlElement", name: str, base: str) -> None:
    address = element.attrib[name].strip()
    try:
        # "#" leads nowhere: a script acts instead.
        url = urljoin(base, address) if address.rstrip("!") != "#" else ""
    except ValueError:
        url = ""
    if url.startswith(("http://", "https://")):
        element.attrib[name] = url
    else:
        del element.attrib[name]


def _drop_after(element: "HtmlElement", root: "HtmlElement") -> None:
    for child in list(element):
        element.remove(child)
    while element is not root:
        parent = element.getparent()
        for sibling in list(element.itersiblings()):
            parent.remove(sibling)
        element = parent


_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_OF_TABLES = {"table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"}
_CARD_BLOCKS = {"div", "p", "article", "section", "ul", "ol", "table", "figure", "header", "dl", *_HEADINGS}
_MAX_CARD_ELEMENTS = 60
_MARKS = {"¶", "#", "§", "🔗", "permalink"}


def simplify_structure(root: "HtmlElement") -> None:
    """Simplify the structure for the conversion.

    Layout tables become `div`s, headings in links become links in headings, and permalink marks are removed.
    """
    tables: dict[HtmlElement, HtmlElement | None] = {}
    layouts: set[HtmlElement] = set()
    elements = list(root.iter())
    for element in elements:
        holder = tables.get(element.getparent())
        is_table = element.tag == "table"
        tables[element] = element if is_table else holder
        if is_table and holder is not None:
            layouts.add(holder)
    layouts |= {table for table in elements if table.tag == "table" and table.get("role") == "presentation"}
    layouts |= _find_single_column(elements, tables)
    for element in elements:
        if element.tag in _OF_TABLES and tables[element] in layouts:
            element.tag = "div"
        elif element.tag == "caption" and (holder := tables[element]) is not None:
            # Before the table, because the converter takes it for a row and then finds no head.
            element.tag = "p"
            holder.addprevious(element)
        elif element.tag == "a":
            _swap_link_and_heading(element)
            if element.tag == "a":
                _unwrap_blocks(element)


def _find_single_column(
    elements: "list[HtmlElement]", tables: "dict[HtmlElement, HtmlElement | None]"
) -> "set[HtmlElement]":
    wide = {tables[row] for row in elements if row.tag == "tr" and len(row) > 1}
    return {table for table in elements if table.tag == "table" and table not in wide}


def _unwrap_blocks(link: "HtmlElement") -> None:
    """Move a link around blocks, such as a card, to its heading or its first text.

    In Markdown, a link cannot contain blocks.
    """
    inner = list(islice(link.iter(), 1, _MAX_CARD_ELEMENTS))
    if not any(element.tag in _CARD_BLOCKS for element in inner):
        return
    headings = [element for element in inner if element.tag in _HEADINGS and element.text_content().strip()]
    texts = [element for element in inner if (element.text or "").strip()]
    target = (headings or texts or inner)[0]
    anchor = target.makeelement("a", {"href": link.get("href", "")})
    if target.tag == "img":
        target.addprevious(anchor)
        anchor.tail, target.tail = target.tail, None
        anchor.append(target)
    else:
        anchor.text, target.text = target.text, None
        for child in list(target) if target in headings else []:
            anchor.append(child)
        target.insert(0, anchor)
    link.tag = "div"
    link.attrib.clear()


def _swap_link_and_heading(link: "HtmlElement") -> None:
    only = link[0] if len(link) == 1 and not (link.text or "").strip() else None
    if only is not None and only.tag in _HEADINGS and not (only.tail or "").strip():
        link.tag, only.tag = only.tag, "a"
        only.set("href", link.get("href", ""))
        link.attrib.clear()
    elif len(link) == 0 and (link.text or "").strip().lower() in _MARKS and "#" in link.get("href", ""):
        link.clear(keep_tail=True)
        link.tag = "span"


_MAX_SCRIPTS = 20
_MAX_ITEMS = 100


def find_article_body(page: "HtmlElement") -> str:
    """Return the longest `articleBody` (schema.org) of `page` as text; "" if there is none."""
    scripts = page.xpath(f"(//script[@type='application/ld+json'])[position() <= {_MAX_SCRIPTS}]")
    bodies = (body for script in scripts for body in _article_bodies(script.text or ""))
    return max(bodies, key=len, default="")


def _article_bodies(script: str) -> Iterator[str]:
    if '"articleBody"' not in script:
        return
    try:
        found = json.loads(script, strict=False)
    except (ValueError, RecursionError):
        return
    for item in _items(found):
        if isinstance(item, dict) and isinstance(body := item.get("articleBody"), str):
            yield fix_surrogates(body.strip())


def _items(found: Any) -> list[Any]:
    if isinstance(found, dict) and isinstance(graph := found.get("@graph"), list):
        return graph[:_MAX_ITEMS]
    return found[:_MAX_ITEMS] if isinstance(found, list) else [found]


_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s*([\w+#.-]{1,30})")


def to_markdown(part: "HtmlElement") -> str:
    """Return `part` as Markdown: headings with `#`, lists with `-`, tables and fenced code."""
    from lxml import html
    from markdownify import markdownify

    try:
        markdown = markdownify(
            str(html.tostring(part, encoding="unicode", with_tail=False)),
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            code_language_callback=_code_language,
            bs4_options="lxml",
        )
    except RecursionError:
        # Nested deeper than any real page; its text is still used.
        markdown = "\n\n".join(str(text).strip() for text in part.itertext() if text.strip())
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", markdown)).strip()


def _code_language(element: "Tag") -> str:
    for tag in (element, *element("code")):
        if match := _LANGUAGE.search(" ".join(tag.get("class") or ())):
            return match[1]
    return ""


# The limit of addresses that are made absolute, which takes time for each.
_MAX_LINKS = 20_000


@dataclass(frozen=True, slots=True)
class FramedPage:
    """An HTML document, its address, and the encoding that its server declares."""

    url: str
    charset: str | None
    body: bytes


def pack_frames(pages: Sequence[FramedPage]) -> bytes:
    """Return a page and the pages of its frames as one body, for `read_frames`."""
    contents = [[page.url, page.charset, len(page.body)] for page in pages]
    return b"".join([json.dumps(contents).encode(), b"\n", *(page.body for page in pages)])


def read_frames(body: bytes, url: str) -> MarkdownDocument:
    """Return the frames of the page at `url` as sections under its title.

    `body` is the result of `pack_frames`.
    """
    page, *frames = _unpack_frames(body)
    title = escape(find_title(_parse_frame(page)))
    sections = "".join(map(_frame_section, frames))
    return read_html(f"<html><head><title>{title}</title></head><body>{sections}</body></html>", url)


def _unpack_frames(body: bytes) -> list[FramedPage]:
    first_line, _, rest = body.partition(b"\n")
    contents = json.loads(first_line)
    ends = [0]
    for _, _, length in contents:
        ends.append(ends[-1] + length)
    pieces = [rest[begin:end] for begin, end in pairwise(ends)]
    return [
        FramedPage(url, charset, piece) for (url, charset, _), piece in zip(contents, pieces, strict=True)
    ]


def _parse_frame(page: FramedPage) -> "HtmlElement":
    return parse_html(decode_text(page.body, page.charset))


def _frame_section(frame: FramedPage) -> str:
    from lxml import html

    page = _parse_frame(frame)
    base = find_base_url(page, frame.url)
    # Not lxml's `make_links_absolute`, which also parses styles, in quadratic time.
    for element in islice(page.iter("a", "img"), _MAX_LINKS):
        name = "href" if element.tag == "a" else "src"
        if name in element.attrib:
            element.set(name, resolve_url(base, element.attrib[name]) or "")
    body = page.find(".//body")
    if body is None:  # the parser adds a leading <main> to the head
        body = page
        for title in page.xpath("//title"):
            title.drop_tree()
    body.tag = "section"
    return str(html.tostring(body, encoding="unicode", with_tail=False))
