"""HTML whose shape is not its meaning: pages laid out in tables, headings in links, marks to link to."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_OF_TABLES = {"table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"}
_MARKS = {"¶", "#", "§", "🔗", "permalink"}


def straighten(root: "HtmlElement") -> None:
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
