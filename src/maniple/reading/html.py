"""Web pages."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, truncation_note
from maniple.reading.encoding import decode_text
from maniple.reading.readability import find_readable_part
from maniple.text import whole

if TYPE_CHECKING:
    from bs4 import Tag
    from lxml.html import HtmlElement

# Runs of blanks and endless tags say nothing, and the libraries below take quadratic time over them.
_BLANKS = re.compile(r"\s{100,}")
_LEAST_BODY = 200
_LINK = re.compile(r"\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
_ENDLESS_TAG = re.compile(r"<[^<>]{20000,}>")


def read_html(text: str, url: str) -> MarkdownDocument:
    """The readable part of the page `text`, which is at `url`; may take seconds."""
    text = _ENDLESS_TAG.sub("", _BLANKS.sub("\n", text))
    # Its tree is let go before the next is made: that of 5 MB of tags takes 250 MB.
    title, base, body = _told(parse_html(text), url)
    is_front = urlsplit(url).path in ("", "/")
    reading = _reading(find_readable_part(lambda: parse_html(text), title, is_front), title, base)
    # A page that is written by its scripts: what stands around the article is all that there is of it.
    if len(body) < _LEAST_BODY or len(body) < 2 * len(_LINK.sub("", reading.markdown)):
        return reading
    note = "" if len(body) <= MAX_CHARACTERS else truncation_note(MAX_CHARACTERS)
    return MarkdownDocument(title, body[:MAX_CHARACTERS], headed=False, note=note)


def read_fragment(source: str, title: str, base: str) -> MarkdownDocument:
    """HTML that is all readable, as that of a feed or made from another format."""
    return _reading(parse_html(source), title, base)


def _reading(part: "HtmlElement", title: str, base: str) -> MarkdownDocument:
    whole = truncate_tree(part, MAX_CHARACTERS)
    simplify_structure(part)
    clean_attributes(part, base)
    return MarkdownDocument(title, to_markdown(part), note="" if whole else truncation_note(MAX_CHARACTERS))


def _told(page: "HtmlElement", url: str) -> tuple[str, str, str]:
    """Return what a page tells of itself: its title, its base and the article for machines."""
    return find_title(page), find_base_url(page, url), find_article_body(page)


def parse_html(text: str) -> "HtmlElement":
    """The document that `text` is, without its comments; of nothing, an empty one."""
    from lxml import html

    # huge_tree: without it the parser stops at 256 levels and the rest of the page is lost.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    # The tag in front: of an empty page the parser makes no document at all.
    return html.document_fromstring(f"<html>{text}".encode("utf-8", "replace"), parser=parser)


def find_base_url(page: "HtmlElement", url: str) -> str:
    """What the addresses in `page`, which is at `url`, are relative to."""
    return resolve_url(url, page.xpath("string(//base/@href)")) or url


def resolve_url(base: str, target: str) -> str | None:
    """The address `target` in a page made absolute; None when it is none."""
    try:
        return urljoin(base, target.strip())
    except ValueError:
        return None


def find_title(page: "HtmlElement") -> str:
    """What `page` calls itself, at most 300 characters; "" for nothing."""
    for path in ("string(//title)", "string(//meta[@property='og:title']/@content)", "string(//h1)"):
        if title := " ".join(page.xpath(path).split()):
            return title[:300]
    return ""


_KEPT = {"href", "src", "alt", "colspan", "rowspan", "start"}
# Where pages that load their images late put the address; what is in `src` then is a placeholder.
_LATE = ("data-src", "data-original", "data-lazy-src", "data-srcset")
# An element costs a converter as much as so many characters.
_ELEMENT_COST = 16


def clean_attributes(root: "HtmlElement", base: str) -> None:
    """Make links and images absolute against `base`.

    Those that are not http or https go, and images that were shown before.
    """
    seen: set[str] = set()
    for element in list(root.iter()):
        if element.tag == "img":
            _find_source(element)
        kept = _KEPT | {"class"} if element.tag in ("pre", "code") else _KEPT
        attributes = {name: value for name, value in element.attrib.items() if name in kept}
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
    """Whether `root` is kept whole: what follows its first `characters` goes, so that nobody converts it.

    An element counts as sixteen characters: a page of nothing but tags ends too.
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
        value for name in _LATE if (value := image.get(name, "").strip()) and not value.startswith("data:")
    ]
    if not image.get("src", "").strip() or image.get("src", "").startswith("data:"):
        late.append(image.get("srcset", "").strip())
    if late and late[0]:
        image.set("src", late[0].split(maxsplit=1)[0].rstrip(","))


def _make_absolute(element: "HtmlElement", name: str, base: str) -> None:
    try:
        url = urljoin(base, element.attrib[name].strip())
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
_MARKS = {"¶", "#", "§", "🔗", "permalink"}


def simplify_structure(root: "HtmlElement") -> None:
    """Tables that only lay out become divisions, headings in links links in headings, and marks nothing."""
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
    layouts |= _of_one_column(elements, tables)
    for element in elements:
        if element.tag in _OF_TABLES and tables[element] in layouts:
            element.tag = "div"
        elif element.tag == "a":
            _straighten_link(element)


def _of_one_column(
    elements: "list[HtmlElement]", tables: "dict[HtmlElement, HtmlElement | None]"
) -> "set[HtmlElement]":
    wide = {tables[row] for row in elements if row.tag == "tr" and len(row) > 1}
    return {table for table in elements if table.tag == "table" and table not in wide}


def _straighten_link(link: "HtmlElement") -> None:
    only = link[0] if len(link) == 1 and not (link.text or "").strip() else None
    if only is not None and only.tag in _HEADINGS and not (only.tail or "").strip():
        link.tag, only.tag = only.tag, "a"
        only.set("href", link.get("href", ""))
        link.attrib.clear()
    elif len(link) == 0 and (link.text or "").strip().lower() in _MARKS and "#" in link.get("href", ""):
        link.clear(keep_tail=True)
        link.tag = "span"


_MOST_SCRIPTS = 20
_MOST_ITEMS = 100


def find_article_body(page: "HtmlElement") -> str:
    """The longest `articleBody` (schema.org) of `page`, as text; "" for none."""
    scripts = page.xpath(f"(//script[@type='application/ld+json'])[position() <= {_MOST_SCRIPTS}]")
    bodies = (body for script in scripts for body in _bodies(script.text or ""))
    return max(bodies, key=len, default="")


def _bodies(script: str) -> Iterator[str]:
    if '"articleBody"' not in script:
        return
    try:
        found = json.loads(script, strict=False)
    except (ValueError, RecursionError):
        return
    for item in _items(found):
        if isinstance(item, dict) and isinstance(body := item.get("articleBody"), str):
            yield whole(body.strip())


def _items(found: Any) -> list[Any]:
    if isinstance(found, dict) and isinstance(graph := found.get("@graph"), list):
        return graph[:_MOST_ITEMS]
    return found[:_MOST_ITEMS] if isinstance(found, list) else [found]


_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s*([\w+#.-]{1,30})")


def to_markdown(part: "HtmlElement") -> str:
    """`part` as Markdown: headings with `#`, lists with `-`, tables and fenced code kept."""
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
        # Nested far beyond what any real page is; its text is still worth reading.
        markdown = "\n\n".join(str(text).strip() for text in part.itertext() if text.strip())
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", markdown)).strip()


def _code_language(element: "Tag") -> str:
    for tag in (element, *element("code")):
        if match := _LANGUAGE.search(" ".join(tag.get("class") or ())):
            return match[1]
    return ""


# More are on no page that anybody reads, and making each absolute takes its time.
_MAX_LINKS = 20_000


@dataclass(frozen=True, slots=True)
class FramedPage:
    """HTML as it came, and where from; `charset` is what its server calls its encoding."""

    url: str
    charset: str | None
    body: bytes


def pack_frames(pages: Sequence[FramedPage]) -> bytes:
    """A page and those in its frames as one body, for `read_frames`."""
    contents = [[page.url, page.charset, len(page.body)] for page in pages]
    return b"".join([json.dumps(contents).encode(), b"\n", *(page.body for page in pages)])


def read_frames(body: bytes, url: str) -> MarkdownDocument:
    """A section for each of the frames of the page at `url`, under its title; `body` is `packed`."""
    page, *frames = _unpacked(body)
    title = escape(find_title(_parsed(page)))
    sections = "".join(map(_section, frames))
    return read_html(f"<html><head><title>{title}</title></head><body>{sections}</body></html>", url)


def _unpacked(body: bytes) -> list[FramedPage]:
    first_line, _, rest = body.partition(b"\n")
    contents = json.loads(first_line)
    ends = [0]
    for _, _, length in contents:
        ends.append(ends[-1] + length)
    pieces = [rest[begin:end] for begin, end in pairwise(ends)]
    return [
        FramedPage(url, charset, piece) for (url, charset, _), piece in zip(contents, pieces, strict=True)
    ]


def _parsed(page: FramedPage) -> "HtmlElement":
    return parse_html(decode_text(page.body, page.charset))


def _section(frame: FramedPage) -> str:
    from lxml import html

    page = _parsed(frame)
    base = find_base_url(page, frame.url)
    # Not lxml's own way: it looks into styles, too, in quadratic time.
    for element in islice(page.iter("a", "img"), _MAX_LINKS):
        name = "href" if element.tag == "a" else "src"
        if name in element.attrib:
            element.set(name, resolve_url(base, element.attrib[name]) or "")
    body = page.find(".//body")
    if body is None:  # the parser takes what begins with <main> for a part of the head
        body = page
        for title in page.xpath("//title"):
            title.drop_tree()
    body.tag = "section"
    return str(html.tostring(body, encoding="unicode", with_tail=False))
