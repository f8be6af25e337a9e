"""Rewrites what a conversion to Markdown would lose: spans of tables, formulas, powers, code, check boxes.

All of it works on a parsed page in place, before its readable part is looked for, and takes linear time.
"""

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_ORDINAL = re.compile(r"st|nd|rd|th|er|re|ère|ème|e|o|a|º|ª|tm|sm|me|mme|lle|os|as|®|™|ns|c", re.IGNORECASE)
_SIMPLE = re.compile(r"[+−-]?\w+")
_FOOTNOTE = re.compile(r"\[.*\]|\*+|†|‡|§")
_LINE_NUMBERS = re.compile(r"[\d\s]+")
_NUMBER_CLASS = re.compile(
    r"\b(?:linenos?|line-?numbers?|lineno|ln-num|hljs-ln-n(?:umbers)?|gutter|blob-num|rouge-gutter)\b"
)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|brush:)-?\s*|highlight-)([a-z][\w+#.-]{0,20})(?:\s|$)"
)
_NO_LANGUAGE = {"default", "none", "text", "wrapper", "table", "code", "block", "box", "container"}
_MAX_COLUMNS = 200
_MAX_CELLS = 20_000
"""Cells of a table after its expansion; a larger one is left as it is, apart from its spans."""
_MAX_HEAD_ROWS = 4
_MAX_FORMULAS = 5_000
_OPERATORS = {"mfrac": "({})/({})", "msup": "{}^({})", "msub": "{}_({})", "mroot": "root({}, {})"}


def preserve_structures(page: "HtmlElement") -> None:
    """Rewrite the parts of `page` whose meaning is in their markup."""
    _write_formulas(page)
    _write_code(page)
    _write_powers(page)
    _write_check_boxes(page)
    for table in [*page.iter("table")]:
        expand_table(table)


def escape_pipes(root: "HtmlElement") -> None:
    """Escape the bars in cells, where they would separate cells of Markdown."""
    for cell in root.iter("td", "th"):
        if cell.find(".//table") is not None:
            continue
        for element in cell.iter():
            if element.text:
                element.text = _escape(element.text)
            if element is not cell and element.tail:
                element.tail = _escape(element.tail)


def _escape(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def _replace(element: "HtmlElement", text: str) -> None:
    """Make `element` a span with this text alone."""
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = "span", text, tail


def _write_formulas(page: "HtmlElement") -> None:
    for whole in page.xpath("//*[contains(concat(' ', @class, ' '), ' mwe-math-element ')]"):
        if tex := _tex_of(whole):
            _replace(whole, f"${tex}$")
    for duplicate in page.xpath("//*[contains(@class, 'katex-html') or contains(@class, 'MathJax_Preview')]"):
        _replace(duplicate, "")
    for math in islice([*page.iter("math")], _MAX_FORMULAS):
        tex = _tex_of(math)
        mark = "$$" if math.get("display") == "block" else "$"
        _replace(math, f"{mark}{tex}{mark}" if tex else _linear(math))
    for script in page.xpath("//script[starts-with(@type, 'math/tex')]"):
        mark = "$$" if "display" in script.get("type", "") else "$"
        before = script.getprevious()
        if before is not None and "MathJax" in before.get("class", ""):
            _replace(before, "")
        _replace(script, f"{mark}{' '.join((script.text or '').split())}{mark}")


def _tex_of(element: "HtmlElement") -> str:
    found = element.xpath("(.//annotation[contains(@encoding, 'tex')])[1]")
    tex = found[0].text_content() if found else element.xpath("string((.//math/@alttext|@alttext)[1])")
    tex = re.sub(r"^\{\\displaystyle\s+(.*)\}$", r"\1", " ".join(tex.split()))
    return tex.strip("$ ")


def _linear(math: "HtmlElement") -> str:
    """Return presentation MathML as one line, such as `(a)/(b)`."""
    written: dict[HtmlElement, str] = {}
    for element in reversed([*math.iter()]):
        parts = [written[child] for child in element if child in written]
        if element.tag in ("annotation", "annotation-xml"):
            written[element] = ""
        elif element.tag in _OPERATORS and len(parts) == 2:
            written[element] = _OPERATORS[element.tag].format(*parts)
        elif element.tag in ("msqrt",):
            written[element] = f"sqrt({''.join(parts)})"
        elif element.tag == "msubsup" and len(parts) == 3:
            written[element] = "{}_({})^({})".format(*parts)
        else:
            written[element] = "".join([(element.text or "").strip(), *parts])
    return re.sub(r"([_^])\((\w+)\)", r"\1\2", written[math])


def _write_powers(page: "HtmlElement") -> None:
    for element in [*page.iter("sup", "sub")]:
        text = " ".join(element.text_content().split())
        is_note = element.find(".//a") is not None or _FOOTNOTE.fullmatch(text)
        if not text or is_note or (element.tag == "sup" and _is_plain_ordinal(element, text)):
            continue
        mark = "^" if element.tag == "sup" else "_"
        _replace(element, f"{mark}{text}" if _SIMPLE.fullmatch(text) else f"{mark}({text})")


def _is_plain_ordinal(element: "HtmlElement", text: str) -> bool:
    if not _ORDINAL.fullmatch(text):
        return False
    before = element.getprevious()
    parent = element.getparent()
    text_before = (before.tail if before is not None else parent.text if parent is not None else "") or ""
    last = text_before.rstrip()[-1:]
    return len(text) > 1 or last.isdigit() or last in "nN"


def _write_check_boxes(page: "HtmlElement") -> None:
    for box in [*page.iter("input")]:
        is_inside = any(one.tag in ("li", "td") for one in islice(box.iterancestors(), 4))
        if is_inside and box.get("type", "").lower() == "checkbox":
            box.tail = (box.tail or "").lstrip()
            _replace(box, "[x] " if "checked" in box.attrib else "[ ] ")


def _write_code(page: "HtmlElement") -> None:
    for table in [*page.iter("table")]:
        _replace_listing(table)
    for pre in page.iter("pre"):
        for element in [*pre.iter("span", "a", "td", "i")]:
            if _NUMBER_CLASS.search(element.get("class", "")) and _is_number(element):
                _replace(element, "")
        if language := _language_around(pre):
            pre.set("class", f"language-{language}")


def _replace_listing(table: "HtmlElement") -> None:
    """Replace a table of line numbers and code by the code."""
    rows = [*table.iter("tr")]
    pairs = [[cell for cell in row if cell.tag in ("td", "th")] for row in rows[:_MAX_CELLS]]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        return
    is_listing = len(pairs) == 1 or any(_NUMBER_CLASS.search(pair[0].get("class", "")) for pair in pairs)
    has_code = table.find(".//pre") is not None or table.getparent().tag in ("pre", "code") or is_listing
    numbers = [_is_number(pair[0]) or _NUMBER_CLASS.search(pair[0].get("class", "")) for pair in pairs]
    if not (is_listing and has_code and all(numbers)):
        return
    if len(pairs) == 1 and pairs[0][1].find(".//pre") is None:
        return
    code = "\n".join(pair[1].text_content().strip("\n") for pair in pairs)
    classes = " ".join(one.get("class", "") for one in table.iter("table", "pre", "code", "div"))
    tail = table.tail
    language = _find_language(classes) or _language_around(table)
    table.clear()
    is_inside = table.getparent().tag in ("pre", "code")
    table.tag, table.text, table.tail = ("span" if is_inside else "pre"), code, tail
    if language and not is_inside:
        table.set("class", f"language-{language}")


def _is_number(element: "HtmlElement") -> bool:
    text = element.text_content()
    return bool(element.get("data-line-number")) or not text.strip() or bool(_LINE_NUMBERS.fullmatch(text))


def _language_around(element: "HtmlElement") -> str:
    """Return the language that the element, its `code`, or one of three elements around it names."""
    code = element.find(".//code")
    around = [*([code] if code is not None else []), element, *islice(element.iterancestors(), 3)]
    for one in around:
        named = one.get("data-lang") or one.get("data-language") or _find_language(one.get("class", ""))
        if named and re.fullmatch(r"[\w+#.-]{1,20}", named):
            return named.lower()
    return ""


def _find_language(classes: str) -> str:
    found = (match[1] for match in _LANGUAGE.finditer(classes[:300].lower()))
    return next((one for one in found if one not in _NO_LANGUAGE), "")


def expand_table(table: "HtmlElement") -> None:
    """Repeat the cells that span rows or columns, and join the rows of a head.

    Each cell is under its head then.
    """
    rows = _rows_of(table)
    cells = [_cells_of(row) for row in rows]
    spans = any(_span(cell, "colspan") > 1 or _span(cell, "rowspan") > 1 for row in cells for cell in row)
    heads = _count_head_rows(rows, cells)
    if not rows or table.find(".//table") is not None or not (spans or heads > 1):
        return
    grid = _lay_out(cells)
    if sum(map(len, grid)) > _MAX_CELLS:
        return
    _fill(rows, grid)
    if heads > 1:
        _join_heads(rows, heads)


def _rows_of(table: "HtmlElement") -> "list[HtmlElement]":
    return [row for row in table.iter("tr") if next(row.iterancestors("table"), None) is table]


def _cells_of(row: "HtmlElement") -> "list[HtmlElement]":
    return [cell for cell in row if cell.tag in ("td", "th")]


def _span(cell: "HtmlElement", name: str) -> int:
    value = cell.get(name, "").strip()
    return min(int(value), _MAX_COLUMNS) if value.isascii() and value.isdecimal() and len(value) < 6 else 1


def _lay_out(cells: "Sequence[Sequence[HtmlElement]]") -> "list[list[HtmlElement | None]]":
    """Return the cell at each place of the grid; a cell that spans places is at all of them."""
    grid: list[list[HtmlElement | None]] = [[] for _ in cells]
    for number, row in enumerate(cells):
        column = 0
        for cell in row:
            while column < len(grid[number]) and grid[number][column] is not None:
                column += 1
            width = max(_span(cell, "colspan"), 1)
            # 0 means all rows below.
            height = _span(cell, "rowspan") or len(cells)
            for below in grid[number : number + height]:
                below += [None] * (column + width - len(below))
                below[column : column + width] = [cell] * width
            column += width
            if column > _MAX_COLUMNS:
                break
    return grid


def _fill(rows: "Sequence[HtmlElement]", grid: "Sequence[Sequence[HtmlElement | None]]") -> None:
    widest = max(map(len, grid), default=0)
    contents = [[None if cell is None else deepcopy(cell) for cell in row] for row in grid]
    for row, cells in zip(rows, contents, strict=True):
        for old in _cells_of(row):
            row.remove(old)
        for cell in [*cells, *[None] * (widest - len(cells))]:
            new = row.makeelement("td", {}) if cell is None else cell
            for name in ("colspan", "rowspan"):
                new.attrib.pop(name, None)
            new.tail = None
            row.append(new)


def _count_head_rows(rows: "Sequence[HtmlElement]", cells: "Sequence[Sequence[HtmlElement]]") -> int:
    """Return the number of rows at the beginning that are a head: in `thead`, or of `th` alone."""
    count = 0
    for row, own in zip(rows, cells, strict=True):
        parent = row.getparent()
        is_head = parent is not None and parent.tag == "thead"
        if not own or not (is_head or all(cell.tag == "th" for cell in own)):
            break
        count += 1
    is_whole = count == len(rows)
    return 1 if is_whole or count > _MAX_HEAD_ROWS else count


def _join_heads(rows: "Sequence[HtmlElement]", heads: int) -> None:
    first = rows[0]
    texts = [[" ".join(cell.text_content().split()) for cell in _cells_of(row)] for row in rows[:heads]]
    for position, cell in enumerate(_cells_of(first)):
        joined = _unique(row[position] for row in texts)
        for child in list(cell):
            cell.remove(child)
        cell.tag, cell.text = "th", " / ".join(joined)
    for row in rows[1:heads]:
        row.getparent().remove(row)


def _unique(texts: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(filter(None, texts))]
